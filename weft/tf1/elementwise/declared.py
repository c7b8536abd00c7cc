"""TensorFlow's functions of the operations and formulas whose faces tell their names."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from weft import ops as ops  # which declares all
from weft.documentation import named
from weft.ops.declaration import Op, Takes
from weft.ops.declaration.face import FACES, Face, arity
from weft.tf1.framework.convert import (
    binary,
    convert_to_tensor,
    emit_constant,
    static_axis,
    unary,
)
from weft.tf1.framework.graph import emit, name_scope
from weft.tf1.framework.tensor import Tensor

_ARGUMENTS: Final = {"Atan2": "y x", "Real": "input", "Imag": "input", "Angle": "input"}
"""Names of arguments other than x, then y, by the type of the operation."""


def built(source: Any) -> Any:
    """TensorFlow's function of an operation or formula, with `name=` for the node."""
    face: Face = source.face
    kind, _, default = face.tf1.split()[0].partition("/")
    build = source.name if isinstance(source, Op) else source

    def single(x: Any, name: str | None = None) -> Tensor:
        return unary(kind, build, x, name, default or None)

    def activation(features: Any, name: str | None = None) -> Tensor:
        return unary(kind, build, features, name, default or None)

    def part(input: Any, name: str | None = None) -> Tensor:
        return unary(kind, build, input, name, default or None)

    def double(x: Any, y: Any, name: str | None = None) -> Tensor:
        return binary(kind, build, x, y, name, default or None)

    def quotient(y: Any, x: Any, name: str | None = None) -> Tensor:
        return binary(kind, build, y, x, name, default or None)

    def along(
        x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False,
        name: str | None = None,
    ) -> Tensor:  # fmt: skip
        with name_scope(name, kind, [x]) as scope:
            tensor = convert_to_tensor(x, name="x")
            at = static_axis(axis, kind)
            emit_constant(np.array(at, np.int32), "axis")
            flags: dict[str, Any] = {"exclusive": exclusive, "reverse": reverse}
            return emit(kind, [tensor], build, axis=at, name=scope, **flags)

    function = single if arity(source) == 1 else double
    place, _, first = face.names("tf1")[0].rpartition(".")
    function = {"y x": quotient, "input": part}.get(_ARGUMENTS.get(kind, ""), function)
    if place == "nn":
        function = activation
    if face.takes is Takes.ALONG:
        function = along
    return named(first, face.doc)(function)


def _all() -> dict[str, Any]:
    functions: dict[str, Any] = {}
    for source in FACES.values():
        if source.face.tf1:
            functions |= dict.fromkeys(source.face.names("tf1"), built(source))
    return functions


_ALL = _all()
globals().update({name.rpartition(".")[2]: function for name, function in _ALL.items()})
# Of `tf` and `tf.math`
__all__ = [n for n in _ALL if "." not in n]  # pyright: ignore[reportUnsupportedDunderAll]
