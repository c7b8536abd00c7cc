"""Element types: one frozen object per type, compared by identity."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn, cast

import ml_dtypes
import numpy as np

from weft.errors import DTypeError, nameless

__all__ = [
    "bfloat16", "bool_", "complex64", "complex128", "float16", "float32", "float64", "int8",
    "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
]  # fmt: skip


class DType:
    """An element type: its name, its NumPy type, and what kind of number it holds.

    Not a dataclass, because `dataclasses.asdict` of a user's configuration would take it apart.
    """

    name: str
    numpy: np.dtype[Any]
    kind: str  # "b" boolean, "i" signed, "u" unsigned, "f" floating, "c" complex, "s", "v"
    prefix: ClassVar[str] = ""
    """What `str` and `repr` put before the name: `torch.` where Weft answers for PyTorch."""

    def __init__(self, name: str, numpy: np.dtype[Any], kind: str) -> None:
        self.__dict__.update(name=name, numpy=numpy, kind=kind)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{self!r}: element types cannot be changed")

    def __eq__(self, other: object) -> bool:
        """Whether it is the same type, its NumPy type, scalar class, or name, as in NumPy.

        >>> float32 == np.float32, float32 == np.int32, float32 == "float32"
        (True, False, True)
        """
        if type(other) is type:
            return self.numpy.type is other
        if isinstance(other, str):
            return self.name == other or self.numpy == other
        return self is other if isinstance(other, DType) else NotImplemented

    __hash__ = object.__hash__

    @property
    def size(self) -> int:
        """Bytes per element."""
        return self.numpy.itemsize

    @property
    def itemsize(self) -> int:
        """Bytes per element, as NumPy and PyTorch call it."""
        return self.size

    @property
    def is_floating(self) -> bool:
        """Whether the type holds floating-point numbers."""
        return self.kind == "f"

    is_floating_point = is_floating

    @property
    def is_signed(self) -> bool:
        """Whether the type holds negative numbers."""
        return self.kind in "ifc"

    @property
    def is_complex(self) -> bool:
        """Whether the type is complex; such types are interpreted, never compiled."""
        return self.kind == "c"

    @property
    def is_hosted(self) -> bool:
        """Whether the type holds texts or Python objects, which no program has: only host nodes."""
        return self.kind in "sv"

    @property
    def is_inexact(self) -> bool:
        """Whether the type is floating-point or complex, and so has gradients."""
        return self.kind in "fc"

    @property
    def real(self) -> DType:
        """The type of the real part; the type itself if it is not complex."""
        return _PARTS.get(self, self)

    def to_real(self) -> DType:
        """The type of the real part; the type itself if it is not complex."""
        return self.real

    def to_complex(self) -> DType:
        """The complex type with parts of this type; complex128 for the widest ones."""
        return self if self.is_complex else complex128 if self.size >= 8 else complex64

    @property
    def is_integer(self) -> bool:
        """Whether the type holds signed or unsigned integers (not booleans)."""
        return self.kind in "iu"

    @property
    def type(self) -> Any:
        """NumPy's scalar class for this type."""
        return self.numpy.type

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy type; NumPy's functions look for an attribute of this name."""
        return self.numpy

    def __call__(self, value: Any) -> Any:
        """Converts a Python number to a NumPy scalar of this type, or a tensor to this type."""
        convert = getattr(value, "to", None)
        if convert is not None:
            return convert(self)
        # ml_dtypes aborts the process if a text is no number; NumPy takes None for NaN.
        if value is None or isinstance(value, str | bytes):
            raise DTypeError(f"{self.name}: expected a number, got {_told(value)}")
        try:
            return self.numpy.type(value)
        except (TypeError, ValueError, OverflowError, SystemError) as error:
            text = f"{self.name}: expected a number, got {_told(value)}"
            raise DTypeError(text) from error

    def __repr__(self) -> str:
        return self.prefix + self.name

    def __format__(self, spec: str, /) -> str:
        return format(self.name, spec)  # texts of our own: messages, names of kernels

    def __reduce__(self) -> tuple[Any, ...]:
        return (_named, (self.name,))  # pickling and copying give the same object


bool_ = DType("bool", np.dtype(np.bool_), "b")
int8 = DType("int8", np.dtype(np.int8), "i")
int16 = DType("int16", np.dtype(np.int16), "i")
int32 = DType("int32", np.dtype(np.int32), "i")
int64 = DType("int64", np.dtype(np.int64), "i")
uint8 = DType("uint8", np.dtype(np.uint8), "u")
uint16 = DType("uint16", np.dtype(np.uint16), "u")
uint32 = DType("uint32", np.dtype(np.uint32), "u")
uint64 = DType("uint64", np.dtype(np.uint64), "u")
float16 = DType("float16", np.dtype(np.float16), "f")
bfloat16 = DType("bfloat16", np.dtype(ml_dtypes.bfloat16), "f")
float32 = DType("float32", np.dtype(np.float32), "f")
float64 = DType("float64", np.dtype(np.float64), "f")
complex64 = DType("complex64", np.dtype(np.complex64), "c")
complex128 = DType("complex128", np.dtype(np.complex128), "c")
string = DType("string", np.dtype(np.object_), "s")
variant = DType("variant", np.dtype(np.object_), "v")

DTYPES = {
    d.name: d
    for d in (
        bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64,
        float16, bfloat16, float32, float64,
    )
}  # fmt: skip
"""The element types that are compiled, by name."""
COMPLEX = {d.name: d for d in (complex64, complex128)}
"""The element types that are only interpreted, by name."""
HOSTED = {d.name: d for d in (string, variant)}
"""The element types of nodes that run on the host, between programs: bytes, and any object."""
NAMED = {**DTYPES, **COMPLEX}
"""The element types of numbers, by name."""
_PARTS = {complex64: float32, complex128: float64}
_BY_NUMPY = {d.numpy: d for d in NAMED.values()}


def is_number(dtype: np.dtype[Any]) -> bool:
    """Whether a NumPy type, in this machine's byte order, is one of Weft's."""
    return dtype in _BY_NUMPY


def _named(name: str) -> DType:
    return HOSTED.get(name) or NAMED[name]


def as_dtype(spec: object) -> DType:
    """The `DType` of numbers for a name, a NumPy type, a Python type; a `DType` itself.

    Raises:
        DTypeError: Weft has no such element type.
    """
    if isinstance(spec, DType):
        return spec
    if isinstance(spec, np.dtype) and spec in _BY_NUMPY:
        return _BY_NUMPY[spec]
    if isinstance(spec, str) and spec in NAMED:
        return NAMED[spec]
    try:
        if spec is None:  # NumPy's default, not Weft's
            raise TypeError
        return _BY_NUMPY[np.dtype(cast(Any, spec))]
    except (KeyError, TypeError, ValueError):
        text = f"dtype: expected one of {', '.join(NAMED)}, got {_told(spec)}"
        raise nameless(DTypeError(text)) from None


def _told(spec: object) -> str:
    """What was given as an element type, for messages; never the elements of an array."""
    return f"{spec!r}" if isinstance(spec, str | type | np.dtype) else type(spec).__name__
