"""Temporary replacement of a module's parameters and buffers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any, Final

from weft.eager.tensor.tensor import Tensor
from weft.errors import ArgumentError, StateError
from weft.ir.node import at_user_line
from weft.nn.parameter import Parameter

_ABSENT: Final = object()
Place = tuple[MutableMapping[str, Any], str]  # where a tensor is registered, and under which name


@contextmanager
def swapped(
    module: Any, tensors: Mapping[str, Any], tie_weights: bool, strict: bool
) -> Iterator[None]:
    """The implementation of `Tree.swapped`."""
    new = dict(tensors)
    for path, value in new.items():
        if value is not None and not isinstance(value, Tensor):
            raise TypeError(
                f"functional_call: expected a Tensor for {path!r}, got {value!r}{at_user_line()}"
            )
    if tie_weights or strict:
        registered = dict(_registered(module))
        if tie_weights:
            _tie(new, registered)
        if strict:
            _check_paths(new, registered)
    places = {path: _place(module, path, value) for path, value in new.items()}
    before = {path: entries.get(name, _ABSENT) for path, (entries, name) in places.items()}
    try:
        for path, (entries, name) in places.items():
            entries[name] = new[path]
        yield
    finally:
        after = {path: entries.get(name) for path, (entries, name) in places.items()}
        for path, (entries, name) in places.items():
            if before[path] is _ABSENT:
                entries.pop(name, None)
            else:
                entries[name] = before[path]
        if isinstance(tensors, MutableMapping):
            tensors.update({path: after[path] for path in tensors})


def _registered(module: Any) -> Iterator[tuple[str, Place]]:
    """Where each parameter and buffer is registered, by path."""
    for prefix, each in module.named_modules(remove_duplicate=False):
        for registry in ("_parameters", "_buffers"):
            entries = each.__dict__[registry]
            for name in entries:
                yield f"{prefix}.{name}" if prefix else name, (entries, name)


def _place(module: Any, path: str, value: Any) -> Place:
    """The place of a path: where it is registered, or where an assignment would put it.

    Raises:
        AttributeError: there is no such module.
    """
    prefix, _, name = path.rpartition(".")
    fields = module.get_submodule(prefix).__dict__
    for registry in ("_parameters", "_buffers"):
        if name in fields[registry]:
            return fields[registry], name
    if not isinstance(fields.get(name), Tensor | None):
        raise TypeError(
            f"functional_call: expected {path!r} to be a Tensor in the module, too, got "
            f"{fields[name]!r}{at_user_line()}"
        )
    return fields["_parameters"] if isinstance(value, Parameter) else fields, name


def _tie(new: dict[str, Any], registered: Mapping[str, Place]) -> None:
    """Replace a tensor that has several paths at all of them.

    Raises:
        ArgumentError: different tensors for two of its paths.
    """
    stands = {
        id(entries[name]): path
        for path, (entries, name) in registered.items()
        if path in new and entries[name] is not None
    }
    for path, (entries, name) in registered.items():
        stand = stands.get(id(entries[name]))
        if stand is not None and new.setdefault(path, new[stand]) is not new[stand]:
            raise ArgumentError.here(
                f"functional_call: {path!r} and {stand!r} are one tensor in the module, expected "
                f"one for both, got two; with tie_weights=False each is replaced alone"
            )


def _check_paths(new: Mapping[str, Any], registered: Mapping[str, Place]) -> None:
    unknown = [path for path in new if path not in registered]
    missing = [path for path in registered if path not in new]
    if unknown or missing:
        parts = [f"there is no {unknown[0]!r}"] if unknown else []
        parts += [f"{missing[0]!r} is missing"] if missing else []
        raise StateError.here(
            f"functional_call: {' and '.join(parts)}, of the paths {list(registered)}"
        )
