"""Nested structures of tensors, as TensorFlow 1 flattens them: dictionaries by sorted keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast


def flatten(structure: Any) -> list[Any]:
    """The leaves, in order.

    >>> flatten({"b": [1, 2], "a": (3,)})
    [3, 1, 2]
    """
    return list(_leaves(structure))


def _leaves(x: Any) -> Iterator[Any]:
    if isinstance(x, Mapping):
        for key in sorted(x):
            yield from _leaves(x[key])
    elif isinstance(x, list | tuple):
        for item in cast("Sequence[Any]", x):
            yield from _leaves(item)
    else:
        yield x


def pack(structure: Any, leaves: Sequence[Any]) -> Any:
    """The structure with other leaves.

    >>> pack({"b": [1, 2], "a": (3,)}, [30, 10, 20])
    {'b': [10, 20], 'a': (30,)}
    """
    return _packed(structure, iter(leaves))


def _packed(x: Any, rest: Iterator[Any]) -> Any:
    if isinstance(x, Mapping):
        found = {key: _packed(x[key], rest) for key in sorted(x)}
        return type(x)((key, found[key]) for key in x)  # type: ignore[call-arg]
    if isinstance(x, list | tuple):
        items = [_packed(item, rest) for item in cast("Sequence[Any]", x)]
        return type(x)(*items) if hasattr(x, "_fields") else type(x)(items)
    return next(rest)


def map_structure(function: Callable[..., Any], *structures: Any) -> Any:
    """The first structure with `function` applied to all leaves at each place."""
    columns = [flatten(s) for s in structures]
    return pack(structures[0], [function(*row) for row in zip(*columns, strict=True)])


def outline(x: Any) -> str:
    """A structure as text, with a dot for each leaf."""
    if isinstance(x, Mapping):
        return "{" + ", ".join([f"{key!r}: {outline(x[key])}" for key in sorted(x)]) + "}"
    if isinstance(x, list | tuple):
        items = ", ".join([outline(item) for item in cast("Sequence[Any]", x)])
        return f"[{items}]" if isinstance(x, list) else f"({items})"
    return "."
