"""Errors of embedding lookups."""

import pytest

import weft as wf
from weft import nn
from weft.errors import OutOfRangeError, ShapeError
from weft.nn import functional as F

BAGS = wf.tensor([1, 2, 3])


@pytest.mark.parametrize("offsets", [[1, 2], [0, 4], [0, -5], [0, 2, 1]])
def test_bags_lie_within_the_input(offsets):
    with pytest.raises(OutOfRangeError, match="offsets that begin at 0 and rise to at most 3, got"):
        nn.EmbeddingBag(5, 2)(BAGS, wf.tensor(offsets)).tolist()
    assert nn.EmbeddingBag(5, 2)(BAGS, wf.tensor([0, 3])).shape == (2, 2)


def test_an_index_that_is_not_computed_yet_raises_too():
    with pytest.raises(OutOfRangeError, match="one_hot: expected indices from 0 to 2, got 1 other"):
        F.one_hot(BAGS + 0, 3).tolist()
    with pytest.raises(OutOfRangeError, match="one_hot: expected indices from 0 to 2, got 1 other"):
        F.one_hot(wf.tensor([-1, 2])).tolist()


def test_faults():
    with pytest.raises(ShapeError, match=r"embedding: expected a weight \(rows, width\), got \(\)"):
        F.embedding(BAGS, wf.tensor(1.0))
    with pytest.raises(NotImplementedError, match="per_sample_weights need mode 'sum'"):
        F.embedding_bag(BAGS[None], wf.zeros(5, 2), per_sample_weights=wf.ones(1, 3))
