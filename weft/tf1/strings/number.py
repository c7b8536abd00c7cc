"""Texts of numbers, and numbers of texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from weft.errors import ArgumentError, DTypeError
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.dtypes import as_dtype, float32, float64, int32, int64, string
from weft.tf1.framework.graph import fail, name_scope
from weft.tf1.framework.host import host_tensor
from weft.tf1.framework.tensor import Tensor
from weft.tf1.strings.text import each

__all__ = ["as_string", "string_to_number"]

_FILLS: Final = ("", "0", " ", "+", "-")


def as_string(
    input: Any, precision: int = -1, scientific: bool = False, shortest: bool = False,
    width: int = -1, fill: str = "", name: str | None = None,
) -> Tensor:  # fmt: skip
    """Numbers as texts, as C's `printf` writes them.

    Args:
        precision: digits after the point of floating-point numbers.
        scientific, shortest: whether these have an exponent, or only if that is shorter.
        width: the least number of characters of a number.
        fill: what fills them: "0", " ", "-" for the right, "+" to have a sign.
    """
    if scientific and shortest:
        raise fail(ArgumentError, "as_string: expected scientific or shortest, got both")
    if fill not in _FILLS:
        raise fail(ArgumentError, f"as_string: expected fill among {_FILLS}, got {fill!r}")
    with name_scope(name, "AsString", [input]) as scope:
        tensor = convert_to_tensor(input)
        kind = tensor.dtype.base_dtype
        if kind is string:
            raise fail(DTypeError, f"as_string: expected numbers, got {tensor!r}")
        if not kind.is_floating and (scientific or shortest or precision >= 0):
            raise fail(
                ArgumentError,
                f"as_string: expected no precision, scientific or shortest for {kind.name}",
            )
        size = fill + (str(width) if width >= 0 else "")
        digits = f".{precision}" if precision >= 0 else ""
        letter = "g" if shortest else "e" if scientific else "f"
        form = _formatted(kind, size, digits + letter)
        many = np.frompyfunc(form, 1, 1)
        return host_tensor("AsString", [tensor], many, string, tensor.shape, scope)


def _formatted(kind: Any, size: str, floating: str) -> Callable[[Any], bytes]:
    if kind.is_bool:
        return lambda x: b"true" if x else b"false"
    if kind.is_floating:
        return lambda x: f"%{size}{floating}".encode() % float(x)
    return lambda x: f"%{size}d".encode() % int(x)


def string_to_number(
    string_tensor: Any = None, out_type: Any = float32, name: str | None = None, input: Any = None
) -> Tensor:
    """The numbers that texts spell.

    Args:
        out_type: float32, float64, int32 or int64.
        input: another name of `string_tensor`.

    Raises:
        InvalidArgumentError: in a run, a text is no such number.
    """
    kind = as_dtype(out_type)
    if kind not in (float32, float64, int32, int64):
        text = "tf.float32, tf.float64, tf.int32 or tf.int64"
        raise fail(DTypeError, f"string_to_number: expected out_type {text}, got {kind}")
    given = input if string_tensor is None else string_tensor
    limits = None if kind.is_floating else np.iinfo(kind.ir.numpy)

    def number(text: bytes) -> Any:
        try:
            found = _float(text) if limits is None else int(text)
        except ValueError:
            found = None
        whole = limits is None or (found is not None and limits.min <= found <= limits.max)
        if found is None or not whole or b"_" in text:
            shown = text.decode(errors="replace")
            raise ArgumentError(f"StringToNumberOp could not correctly convert string: {shown}")
        return found

    return each("StringToNumber", given, number, name, kind)


def _float(text: bytes) -> float:
    plain = text.decode().strip()
    return float.fromhex(plain) if plain[:3].lower().lstrip("+-").startswith("0x") else float(plain)
