"""Records of options that behave as TensorFlow's protocol buffers do."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, TypeVar, dataclass_transform

from weft.errors import ArgumentError

T = TypeVar("T")


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
def message(cls: type[T]) -> type[T]:
    """Makes a class of annotated fields a record: all fields have defaults, and there are no more.

    It prints the fields that are not the default.
    """
    made: Any = dataclass(kw_only=True, slots=True, repr=False)(cls)
    names = [f.name for f in fields(made)]
    create: Callable[..., None] = made.__init__

    @functools.wraps(create)
    def init(self: Any, **options: Any) -> None:
        for name in options:
            if name not in names:
                raise ArgumentError.here(
                    f"{cls.__name__}: expected some of {', '.join(names)}, got {name!r}"
                )
        create(self, **{name: value for name, value in options.items() if value is not None})

    made.__init__ = init
    made.__repr__ = made.__str__ = lambda self: "".join(_lines(self))
    made.CopyFrom = _copy_from
    return made


def _copy_from(self: Any, other: Any) -> None:
    """Takes over all fields of another record of this kind."""
    for each in fields(self):
        setattr(self, each.name, copy.deepcopy(getattr(other, each.name)))


def _lines(record: Any, indent: str = "") -> list[str]:
    """A record as text: one line a field, in braces for what has fields."""
    lines: list[str] = []
    for each in fields(record):
        value = getattr(record, each.name)
        default: Any = each.default
        if default is MISSING and each.default_factory is not MISSING:
            default = each.default_factory()
        if value != default:
            lines += _field(each.name, value, indent)
    return lines


def _field(name: str, value: Any, indent: str) -> list[str]:
    inner = indent + "  "
    if isinstance(value, Mapping):
        items: Mapping[Any, Any] = value
        return [
            f"{indent}{name} {{\n{inner}key: {_scalar(k)}\n{inner}value: {_scalar(v)}\n{indent}}}\n"
            for k, v in items.items()
        ]
    if isinstance(value, list):
        return [line for item in value for line in _field(name, item, indent)]  # pyright: ignore[reportUnknownVariableType]
    if hasattr(value, "__dataclass_fields__"):
        return [f"{indent}{name} {{\n", *_lines(value, inner), f"{indent}}}\n"]
    return [f"{indent}{name}: {_scalar(value)}\n"]


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else repr(value)
