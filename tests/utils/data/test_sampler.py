"""Composed datasets, and samplers."""

import numpy as np
import pytest

import weft as wf
from weft.errors import ArgumentError, DTypeError, ShapeError, TreeError
from weft.utils.data import (
    ChainDataset,
    ConcatDataset,
    DistributedSampler,
    RandomSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    random_split,
)


def test_datasets_of_datasets():
    joined = ConcatDataset([range(3), [10, 11]])
    assert [joined[i] for i in range(-5, 5)] == [0, 1, 2, 10, 11] * 2
    with pytest.raises(IndexError, match="expected -5 <= index < 5, got 5"):
        joined[5]
    assert list(Subset(joined, [4, 0])) == [11, 0]
    assert StackDataset(a=range(2), b="xy")[1] == {"a": 1, "b": "y"}
    assert list(ChainDataset([range(2), "ab"])) == [0, 1, "a", "b"]
    with pytest.raises(ShapeError, match="tensors of one length"):
        TensorDataset(wf.zeros(2), wf.zeros(3))
    with pytest.raises(ShapeError, match="one length, got"):
        StackDataset(range(2), range(3))


def test_random_split_has_each_once():
    parts = random_split(range(11), [0.5, 0.5], wf.Generator().manual_seed(1))
    again = random_split(range(11), [6, 5], wf.Generator().manual_seed(1))
    assert [len(p) for p in parts] == [6, 5]
    assert [list(p) for p in parts] == [list(p) for p in again]
    assert sorted([*parts[0], *parts[1]]) == list(range(11))
    with pytest.raises(ArgumentError, match="lengths that add up to 11"):
        random_split(range(11), [6, 6])


def test_samplers():
    generator = wf.Generator().manual_seed(0)
    assert sorted(RandomSampler(range(9), generator=generator)) == list(range(9))
    longer = list(RandomSampler(range(4), num_samples=10, generator=generator))
    assert sorted(longer[:4]) == sorted(longer[4:8]) == [0, 1, 2, 3]
    assert sorted(SubsetRandomSampler([3, 5, 8], generator)) == [3, 5, 8]
    drawn = list(WeightedRandomSampler([1, 0, 3], 4000, generator=generator))
    assert abs(np.mean(drawn) - 1.5) < 0.06
    assert 1 not in drawn
    firsts = [next(iter(WeightedRandomSampler([1, 0, 3], 2, False, generator))) for _ in range(400)]
    assert abs(np.mean(firsts) - 1.5) < 0.15
    with pytest.raises(ArgumentError, match="without replacement"):
        WeightedRandomSampler([1, 0], 2, False)


def test_ranks_have_parts_of_one_order():
    ranks = [DistributedSampler(range(10), 3, rank) for rank in range(3)]
    assert {(r.num_samples, r.total_size) for r in ranks} == {(4, 12)}
    found = [list(rank) for rank in ranks]
    assert [len(part) for part in found] == [4, 4, 4]
    assert {number for part in found for number in part} == set(range(10))
    for rank in ranks:
        rank.set_epoch(1)
    assert [list(rank) for rank in ranks] != found


def test_samples_that_make_no_batch():
    with pytest.raises(ShapeError, match=r"shape \(2,\) as the first, got shape \(3,\) in place 1"):
        default_collate([np.zeros(2), np.zeros(3)])
    with pytest.raises(TreeError, match=r"expected the keys \['a'\], got \['b'\] in sample 1"):
        default_collate([{"a": 1}, {"b": 1}])
    with pytest.raises(TreeError, match="expected 2 parts in each sample, got 3 in sample 1"):
        default_collate([(1, 2), (1, 2, 3)])
    with pytest.raises(DTypeError, match="got object; give the loader a collate_fn"):
        default_collate([object()])
    assert default_collate([0.5, 1.5]).dtype is wf.float64
