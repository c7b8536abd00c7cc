"""Nested containers: which parts are leaves, in which order, and what copies are made of."""

from collections import OrderedDict, namedtuple

import pytest

from weft.host.nested import NESTED, Nesting

Pair = namedtuple("Pair", "a b")
MIXED = {"z": [1, (2, None)], "b": Pair(3, OrderedDict(y=4, x=()))}


@pytest.mark.parametrize(
    "nesting, leaves",
    [
        (NESTED, [1, 2, None, 3, 4]),
        (Nesting(sorted_keys=True, none=True), [3, 4, 1, 2]),
        (Nesting(lists=False), [[1, (2, None)], 3, 4]),
        (Nesting(atoms=(Pair,)), [1, 2, None, Pair(3, OrderedDict(y=4, x=()))]),
        (Nesting(types=True), [1, 2, None, 3, 4]),
    ],
)
def test_leaves_and_copies(nesting, leaves) -> None:
    assert nesting.leaves(MIXED) == leaves
    copy = nesting.packed(MIXED, leaves)
    assert copy == MIXED and list(copy) == list(MIXED) and type(copy["b"]) is Pair
    seen = []
    nesting.mapped(seen.append, MIXED)
    assert seen == leaves
    doubled = nesting.mapped(lambda *xs: xs, MIXED, MIXED)
    assert nesting.leaves(nesting.mapped(lambda x: 0, MIXED)) == [0] * len(leaves)
    assert list(doubled) == list(MIXED)


def test_types_are_kept_on_demand() -> None:
    inner = MIXED["b"]
    assert type(NESTED.mapped(str, inner).b) is dict
    assert type(Nesting(types=True).mapped(str, inner).b) is OrderedDict


def test_other_numbers_of_leaves_are_refused() -> None:
    with pytest.raises(ValueError):
        NESTED.mapped(max, (1, 2), (1,))
