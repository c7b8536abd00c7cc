"""Elements are nested tuples and dicts; anything else in them is a leaf."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from weft.errors import ShapeError, TreeError
from weft.host.nested import Nesting

Array = np.ndarray[Any, Any]


ELEMENT: Final = Nesting(lists=False)
rebuilt = ELEMENT.rebuilt
map_leaves = ELEMENT.mapped
leaves = ELEMENT.leaves

Joined = Callable[[list[Any], str], Any]


def joined(elements: Sequence[Any], join: Joined, where: str = "element") -> Any:
    """One element of `join(leaves, place)` of the elements' leaves at each place.

    Raises:
        TreeError: an element's structure differs from the first's.
    """
    first = elements[0]
    if isinstance(first, tuple):
        _alike(elements, where, lambda x: isinstance(x, tuple) and len(x) == len(first))
        columns = zip(*elements, strict=True)
        return rebuilt(first, [joined(c, join, f"{where}[{i}]") for i, c in enumerate(columns)])
    if isinstance(first, dict):
        _alike(elements, where, lambda x: isinstance(x, dict) and x.keys() == first.keys())
        return {key: joined([x[key] for x in elements], join, f"{where}[{key!r}]") for key in first}
    return join(list(elements), where)


def _alike(elements: Sequence[Any], where: str, fits: Callable[[Any], bool]) -> None:
    for number, x in enumerate(elements):
        if not fits(x):
            raise TreeError(
                f"batch: expected {where} to be like the first, {_shown(elements[0])}, "
                f"got {_shown(x)} in place {number}"
            )


def _shown(element: Any) -> str:
    if isinstance(element, tuple):
        return f"a tuple of {len(element)}"
    if isinstance(element, dict):
        return f"a dict of {sorted(map(str, element))}"
    return f"{type(element).__name__} of shape {np.shape(element)}"


def stack(elements: Sequence[Any]) -> Any:
    """Elements stacked along a new first axis; strings and other objects go into object arrays.

    Raises:
        TreeError, ShapeError: an element differs from the first in structure or shape.

    >>> stack([(1, "a"), (2, "b")])
    (array([1, 2]), array(['a', 'b'], dtype=object))
    """
    return joined(elements, stack_column)


def stack_column(column: list[Any], where: str) -> Any:
    """The leaves at one place of the elements, stacked; `where` names the place in errors."""
    first = column[0]
    if isinstance(first, np.ndarray):
        return _arrays(column, where)
    if isinstance(first, bool | int | float | complex | np.generic) and not isinstance(
        first, np.str_ | np.bytes_
    ):
        return _arrays(column, where)
    if isinstance(first, list):
        return _arrays([np.asarray(x) for x in column], where)
    out = np.empty(len(column), object)
    out[:] = column
    return out


def _arrays(column: list[Any], where: str) -> Array:
    try:
        return np.array(column) if np.ndim(column[0]) == 0 else np.stack(column)
    except (ValueError, TypeError):
        expected = np.shape(column[0])
        for number, x in enumerate(column):
            if np.shape(x) != expected:
                raise ShapeError(
                    f"batch: expected {where} of shape {expected} as the first, got shape "
                    f"{np.shape(x)} in place {number}; padded_batch takes other shapes"
                ) from None
        raise


def split(batch: Any) -> list[Any]:
    """The elements of a batch: the inverse of `stack`."""
    columns = leaves(batch)
    if not columns:
        return []
    counts = {len(column) for column in columns}
    if len(counts) != 1:
        raise ShapeError(f"unbatch: expected leaves of one length, got {sorted(counts)}")
    return [map_leaves(lambda column, i=i: column[i], batch) for i in range(counts.pop())]
