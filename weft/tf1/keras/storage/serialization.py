"""Objects to names and configurations, and back; data only, no code is run."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

import numpy as np

import weft.tf1 as tf
from weft.documentation import named
from weft.errors import ArgumentError, UnknownKeyError
from weft.tf1.framework.graph import fail

_custom: dict[str, Any] = {}


def get_custom_objects() -> dict[str, Any]:
    """Custom classes and functions by name, for configurations."""
    return _custom


@contextlib.contextmanager
def custom_object_scope(*tables: Mapping[str, Any]) -> Iterator[None]:
    """Inside, configurations may name these classes and functions."""
    before = dict(_custom)
    for table in tables:
        _custom.update(table)
    try:
        yield
    finally:
        _custom.clear()
        _custom.update(before)


class Configured:
    """Base class of what configurations describe: the arguments are attributes."""

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return dict(vars(self))

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """An object from `get_config`."""
        return cls(**config)


def serialize(thing: Any) -> Any:
    """The name of a function, or class name and configuration of an object.

    Args:
        thing: a function, an object with `get_config`, or a name, which stays as it is.
    """
    if thing is None or isinstance(thing, str):
        return thing
    if hasattr(thing, "get_config"):
        return {"class_name": type(thing).__name__, "config": thing.get_config()}
    if hasattr(thing, "__name__"):
        return thing.__name__
    raise fail(ArgumentError, f"serialize: expected an object with get_config(), got {thing!r}")


def as_data(value: Any) -> Any:
    """An argument as data: functions and objects serialized, plain values as they are."""
    if isinstance(value, list):
        return [as_data(item) for item in value]
    return serialize(value) if callable(value) or hasattr(value, "get_config") else value


@functools.cache
def constructor_arguments(cls: type, root: type = object) -> tuple[str, ...]:
    """The names of a constructor's arguments, first those that go to base classes below `root`."""
    names: list[str] = []
    for base in cls.__mro__[: cls.__mro__.index(root)]:
        if "__init__" in vars(base):
            _, *own = inspect.signature(vars(base)["__init__"]).parameters.values()
            named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
            names = [*[p.name for p in own if p.kind in named], *names]
            if inspect.Parameter.VAR_KEYWORD not in [p.kind for p in own]:
                break
    return tuple(dict.fromkeys(names))


def table_of(namespace: Mapping[str, Any], *others: str) -> dict[str, Any]:
    """What a module offers by name in configurations: all of `__all__` but `others`."""
    apart = {"deserialize", "get", "serialize", *others}
    return {n: namespace[n] for n in namespace["__all__"] if n not in apart}


def deserialized(
    what: str, table: Mapping[str, Any], given: Any, custom_objects: Mapping[str, Any] | None = None
) -> Any:
    """The object of a name or a configuration; other values as they are.

    Raises:
        UnknownKeyError: the name is unknown; the message lists the known ones.
    """
    if isinstance(given, str):
        return _named(what, table, given, custom_objects)
    if isinstance(given, Mapping) and "class_name" in given:
        cls = _named(what, table, given["class_name"], custom_objects)
        config = dict(given.get("config") or {})
        if not hasattr(cls, "from_config"):
            return cls
        with custom_object_scope(custom_objects or {}):
            return cls.from_config(config)
    return given


def getter(what: str, table: Mapping[str, Any]) -> Callable[[Any], Any]:
    """The function `get` of a module, which makes objects of names, configurations and classes."""

    @named("get", f"""A {what} by name or configuration; other values as they are.

    Args:
        identifier: a name, a configuration, a {what} or `None`.

    Raises:
        UnknownKeyError: the name is unknown.
    """)  # fmt: skip
    def get(identifier: Any) -> Any:
        made = deserialized(what, table, identifier)
        return made() if isinstance(made, type) else made

    return get


def _named(
    what: str, table: Mapping[str, Any], name: str, custom_objects: Mapping[str, Any] | None
) -> Any:
    for known in (custom_objects or {}, _custom, table):
        if name in known:
            return known[name]
    names = sorted({*table, *_custom, *(custom_objects or {})})
    raise fail(UnknownKeyError, f"{what}: expected one of {names}, got {name!r}")


def plain(x: Any) -> Any:
    """Conversion of values that `json` does not support."""
    if isinstance(x, np.ndarray):
        return x.tolist()
    if isinstance(x, np.generic):
        return x.item()
    if isinstance(x, tf.DType):
        return x.name
    if isinstance(x, tf.TensorShape):
        return x.as_list()
    if isinstance(x, tf.Dimension):
        return x.value
    raise fail(ArgumentError, f"to_json: expected numbers, names and lists, got {type(x).__name__}")
