"""Lookups in tables: what is refused."""

import pytest

import weft as wf
from weft import nn
from weft.errors import OutOfRangeError, ShapeError
from weft.nn import functional as F

BAGS = wf.tensor([1, 2, 3])


@pytest.mark.parametrize("offsets", [[1, 2], [0, 4]])
def test_bags_lie_within_the_input(offsets):
    with pytest.raises(OutOfRangeError, match="expected offsets from 0 to at most 3"):
        nn.EmbeddingBag(5, 2)(BAGS, wf.tensor(offsets))
    assert nn.EmbeddingBag(5, 2)(BAGS, wf.tensor([0, 3])).shape == (2, 2)


def test_faults():
    with pytest.raises(ShapeError, match=r"embedding: expected a weight \(rows, width\), got \(\)"):
        F.embedding(BAGS, wf.tensor(1.0))
    with pytest.raises(NotImplementedError, match="per_sample_weights go with mode 'sum'"):
        F.embedding_bag(BAGS[None], wf.zeros(5, 2), per_sample_weights=wf.ones(1, 3))
