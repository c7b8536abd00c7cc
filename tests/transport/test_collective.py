"""Collectives among threads: equal bits on every rank, for any number of ranks."""

import numpy as np
import pytest

from weft.errors import DistributedError
from weft.transport import collective
from weft.transport.group import Group
from weft.transport.local import in_threads


def tree(rows):
    while len(rows) > 1:
        pairs = [a + b for a, b in zip(rows[::2], rows[1::2], strict=False)]
        rows = pairs + rows[len(rows) & ~1 :]
    return rows[0]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("count", [0, 1, 7, 20_000])
def test_sums_are_added_in_one_tree(size, count):
    data = np.random.default_rng(0).standard_normal((size, count)).astype(np.float32)

    def work(transport):
        x = data[transport.rank].copy()
        collective.all_reduce(Group(transport, range(size)), x, x, "sum", "sum")
        return x

    for found in in_threads(size, work):
        np.testing.assert_array_equal(found, tree(list(data)))


@pytest.mark.parametrize("size", [2, 3, 7])
def test_broadcast_and_barrier_from_any_root(size):
    def work(transport):
        group, found = Group(transport, range(size)), []
        for root in range(size):
            x = np.full(3, transport.rank)
            collective.broadcast(group, x, root, "broadcast")
            collective.barrier(group)
            found.append(x.tolist())
        return found

    assert in_threads(size, work) == [[[r] * 3 for r in range(size)]] * size


def test_bytes_of_any_lengths():
    def work(transport):
        group = Group(transport, range(4))
        return collective.all_gather_bytes(group, b"x" * transport.rank, "bytes")

    assert in_threads(4, work) == [[b"", b"x", b"xx", b"xxx"]] * 4


def test_a_rank_that_fails_ends_the_others():
    def work(transport):
        if transport.rank == 1:
            raise ValueError("bad luck")
        collective.barrier(Group(transport, range(3)))

    with pytest.raises((ValueError, DistributedError), match="bad luck"):
        in_threads(3, work)
