"""TensorFlow's element types: `tf.float32` and friends, on Weft's own."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from weft.documentation import Reads
from weft.errors import DTypeError
from weft.ir import dtype as ir

__all__ = [
    "DType", "as_dtype", "bfloat16", "complex64", "complex128", "double", "float16", "float32",
    "float64", "half", "int8", "int16", "int32", "int64", "string", "uint8", "uint16", "uint32",
    "uint64", "variant",
]  # fmt: skip


class DType:
    """An element type, or a reference to a variable's buffer of it (`float32_ref`)."""

    __slots__ = ("_is_ref", "ir", "name")

    def __init__(self, element: ir.DType, is_ref: bool = False) -> None:
        if type(element) is not ir.DType:
            raise DTypeError(
                f"DType: expected one of the types here, such as tf.float32, got {element!r}"
            )
        self.ir: Final = element
        self._is_ref: Final = is_ref
        self.name: Final = element.name + ("_ref" if is_ref else "")

    @property
    def _is_ref_dtype(self) -> bool:
        return self._is_ref

    @property
    def base_dtype(self) -> DType:
        """The type itself, without `_ref`."""
        return _BASE[self.ir.name]

    @property
    def real_dtype(self) -> DType:
        """The type of the real part; itself for real numbers."""
        return _BASE[self.ir.real.name] if self.is_complex else self.base_dtype

    @property
    def _as_ref(self) -> DType:
        return _REFS[self.ir.name]

    as_numpy_dtype = Reads[type[Any]](
        "ir.numpy.type", "The NumPy scalar type, such as `np.float32`."
    )
    is_floating = Reads[bool]("ir.is_floating", "Whether the type holds floating-point numbers.")
    is_integer = Reads[bool]("ir.is_integer", "Whether the type holds integers (not booleans).")

    @property
    def is_unsigned(self) -> bool:
        """Whether the type holds unsigned integers."""
        return self.ir.kind == "u"

    @property
    def is_bool(self) -> bool:
        """Whether the type is `bool`."""
        return self.ir.kind == "b"

    @property
    def is_complex(self) -> bool:
        """Whether the type holds complex numbers."""
        return self.ir.is_complex

    @property
    def is_numpy_compatible(self) -> bool:
        """Always true."""
        return True

    size = Reads[int]("ir.size", "Bytes per element.")

    @property
    def limits(self) -> tuple[float, float]:
        """The minimum and the maximum."""
        return self.min, self.max

    @property
    def min(self) -> Any:
        """The minimum finite value.

        Raises:
            DTypeError: the type is `bool`.
        """
        return self._info().min

    @property
    def max(self) -> Any:
        """The maximum finite value.

        Raises:
            DTypeError: the type is `bool`.
        """
        return self._info().max

    def _info(self) -> Any:
        if self.is_floating:
            return ir_finfo(self.ir)
        if self.is_integer:
            return np.iinfo(self.ir.numpy)
        raise DTypeError(f"dtype: expected a numeric type, got {self.name}")

    def is_compatible_with(self, other: object) -> bool:
        """Whether a tensor of type `other` is accepted where this type is expected."""
        return as_dtype(other).base_dtype is self.base_dtype

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if other is None:
            return False
        try:
            return as_dtype(other).name == self.name
        except TypeError:
            return False

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"tf.{self.name}"

    def __str__(self) -> str:
        return f"<dtype: {self.name!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return (as_dtype, (self.name,))


def ir_finfo(element: ir.DType) -> Any:
    """Limits of a floating type, bfloat16 included."""
    if element is ir.bfloat16:
        return _Limits(-3.3895313892515355e38, 3.3895313892515355e38)
    return np.finfo(element.numpy)


class _Limits:
    def __init__(self, low: float, high: float) -> None:
        self.min = low
        self.max = high


_ELEMENTS: Final = {**ir.NAMED, **ir.HOSTED}
_BASE: Final = {name: DType(element) for name, element in _ELEMENTS.items()}
_REFS: Final = {name: DType(element, is_ref=True) for name, element in _ELEMENTS.items()}
_BY_NAME: Final = {d.name: d for d in (*_BASE.values(), *_REFS.values())} | {
    "half": _BASE["float16"],
    "float": _BASE["float32"],
    "double": _BASE["float64"],
}

bool_: Final = _BASE["bool"]
int8: Final = _BASE["int8"]
int16: Final = _BASE["int16"]
int32: Final = _BASE["int32"]
int64: Final = _BASE["int64"]
uint8: Final = _BASE["uint8"]
uint16: Final = _BASE["uint16"]
uint32: Final = _BASE["uint32"]
uint64: Final = _BASE["uint64"]
float16: Final = _BASE["float16"]
half: Final = float16
bfloat16: Final = _BASE["bfloat16"]
float32: Final = _BASE["float32"]
float64: Final = _BASE["float64"]
double: Final = float64
complex64: Final = _BASE["complex64"]
complex128: Final = _BASE["complex128"]
string: Final = _BASE["string"]
variant: Final = _BASE["variant"]

_PYTHON: Final[dict[object, DType]] = {
    float: float32, bool: bool_, int: int32, complex: complex128, str: string, bytes: string,
    np.object_: string,
}  # fmt: skip


def as_dtype(spec: object) -> DType:
    """The `DType` for a name, a NumPy type, `float`, `int`, `bool`, `str`, or a `DType` itself.

    Texts are NumPy's types of kinds O, S and U.

    Raises:
        DTypeError: there is no such element type.
    """
    if isinstance(spec, DType):
        return spec
    if isinstance(spec, ir.DType):
        return _BASE[spec.name]
    if isinstance(spec, str) and spec in _BY_NAME:
        return _BY_NAME[spec]
    if isinstance(spec, type) and spec in _PYTHON:
        return _PYTHON[spec]
    if isinstance(spec, np.dtype) and spec.kind in "OSU":
        return string
    if spec is None:
        raise DTypeError("dtype: expected an element type, got None")
    return _BASE[ir.as_dtype(spec).name]
