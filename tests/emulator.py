"""The emitter protocol on NumPy arrays: runs lowering rules without the code generator.

A scalar is a whole array here, one entry an output element, so a rule is called once. Half
precision is held in float32 and rounded when a result is stored, as compiled kernels do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.ir.dtype import DType, as_dtype, bool_, float32
from weft.ops.declaration import Array, Elementwise, Op, Pull
from weft.ops.elementwise.convert import cast as cast_op

HALVES = ("float16", "bfloat16")


def _register(dtype: DType) -> np.dtype[Any]:
    return float32.numpy if dtype.name in HALVES else dtype.numpy


@dataclass(frozen=True)
class Lanes:
    """Elements of one type on their way through a rule."""

    array: Array
    dtype: DType

    def _binary(self, function: Any, other: Any, swap: bool = False) -> Lanes:
        if isinstance(other, Lanes):
            assert other.dtype is self.dtype, f"{self.dtype} meets {other.dtype}"
            right = other.array
        else:
            assert isinstance(other, int | float), f"a bare {type(other).__name__}"
            right = np.asarray(other).astype(self.array.dtype)
        pair = (right, self.array) if swap else (self.array, right)
        return Lanes(np.asarray(function(*pair)).astype(self.array.dtype), self.dtype)

    def __add__(self, other: Any) -> Lanes:
        return self._binary(np.add, other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Lanes:
        return self._binary(np.subtract, other)

    def __rsub__(self, other: Any) -> Lanes:
        return self._binary(np.subtract, other, swap=True)

    def __mul__(self, other: Any) -> Lanes:
        return self._binary(np.multiply, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Lanes:
        return self._binary(np.divide, other)

    def __rtruediv__(self, other: Any) -> Lanes:
        return self._binary(np.divide, other, swap=True)

    def __neg__(self) -> Lanes:
        return Lanes(np.negative(self.array), self.dtype)


def _integer_power(a: int, b: int) -> int:
    if b < 0:
        a, b = (a if abs(a) == 1 else 0), -b
    wrapped = pow(int(a), int(b), 1 << 64)
    return wrapped - (1 << 64) if wrapped >> 63 else wrapped


def _power(x: Array, y: Array) -> Array:
    if x.dtype.kind == "f":
        return np.power(x, y)
    return np.vectorize(_integer_power, otypes=[object])(x, y).astype(np.int64)


_UNARY = {
    **{n: getattr(np, n) for n in ("exp", "expm1", "log", "log1p", "tanh", "sin", "cos", "tan")},
    **{n: getattr(np, n) for n in ("sinh", "cosh", "sqrt", "floor", "ceil", "trunc", "abs")},
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "round": np.rint,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x.astype(np.longdouble))),
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
    "bit_not": np.invert,
}
_BINARY = {
    "atan2": np.arctan2,
    "power": _power,
    "bit_and": np.bitwise_and,
    "bit_or": np.bitwise_or,
    "bit_xor": np.bitwise_xor,
    "shift_left": np.left_shift,
    "shift_right": np.right_shift,
    **{n: getattr(np, n) for n in ("minimum", "maximum", "floor_divide", "remainder", "fmod")},
}
_COMPARISONS = ("equal", "not_equal", "less", "less_equal")


class Emulator:
    """An `Emitter`; index expressions are integer arrays."""

    def __getattr__(self, name: str) -> Any:
        if name in _UNARY:
            return lambda x: Lanes(np.asarray(_UNARY[name](x.array)).astype(x.array.dtype), x.dtype)
        if name in _BINARY:
            return lambda x, y: x._binary(_BINARY[name], y)
        if name in _COMPARISONS:
            return lambda x, y: Lanes(np.asarray(self._compare(name, x, y)), bool_)
        raise AttributeError(name)

    def _compare(self, name: str, x: Lanes, y: Lanes) -> Array:
        assert isinstance(y, Lanes), "comparisons take scalars, not bare numbers"
        assert x.dtype is y.dtype, f"{x.dtype} meets {y.dtype}"
        return getattr(np, name)(x.array, y.array)

    def fma(self, x: Lanes, y: Lanes, z: Lanes) -> Lanes:
        return x * y + z

    def select(self, condition: Lanes, x: Lanes, y: Lanes) -> Lanes:
        assert condition.dtype is bool_
        return x._binary(lambda a, b: np.where(condition.array, a, b), y)

    def mul_high(self, x: Lanes, y: Lanes) -> Lanes:
        product = x.array.astype(np.uint64) * y.array.astype(np.uint64)
        return Lanes((product >> np.uint64(32)).astype(np.uint32), x.dtype)

    def cast(self, x: Lanes, dtype: DType) -> Lanes:
        return self.load(cast_op.reference(x.array, dtype=dtype), dtype)

    def bitcast(self, x: Lanes, dtype: DType) -> Lanes:
        return self.load(np.asarray(self.store(x), order="C").view(dtype.numpy), dtype)

    def const(self, value: Any, dtype: DType) -> Lanes:
        return Lanes(np.asarray(value).astype(_register(dtype)), dtype)

    def scalar(self, index: Any, dtype: DType) -> Lanes:
        return self.load(np.asarray(index).astype(dtype.numpy), dtype)

    def index(self, x: Lanes, size: int) -> Any:
        return np.clip(x.array.astype(np.int64), 0, max(size - 1, 0))

    def inside(self, index: Any, low: int, high: int) -> Lanes:
        return Lanes((np.asarray(index) >= low) & (np.asarray(index) < high), bool_)

    def clamp(self, index: Any, low: int, high: int) -> Any:
        return np.clip(index, low, high - 1)

    def load(self, array: Array, dtype: DType) -> Lanes:
        return Lanes(np.asarray(array).astype(_register(dtype)), dtype)

    def store(self, x: Lanes) -> Array:
        return x.array.astype(x.dtype.numpy)


def emulate(op: Op, arrays: tuple[Array, ...], attrs: Any, shape: tuple[int, ...]) -> Array:
    """The output of an elementwise or pull operation, by its lowering rule."""
    b = Emulator()
    with np.errstate(all="ignore"):
        if isinstance(op.lower, Elementwise):
            found = op.lower.rule(b, *[b.load(a, as_dtype(a.dtype)) for a in arrays], **attrs)
        else:
            assert isinstance(op.lower, Pull)
            if 0 in shape:
                return np.empty(shape, op.reference(*arrays, **attrs).dtype)
            index = tuple(np.indices(shape)) if shape else ()
            found = op.lower.rule(b, index, *[_reader(b, a) for a in arrays], **attrs)
        return np.broadcast_to(b.store(found), shape)


class _reader:
    """An input as pull rules see it: a function from an index to a scalar."""

    def __init__(self, b: Emulator, array: Array) -> None:
        self.shape = array.shape
        self.dtype = as_dtype(array.dtype)
        self._b = b
        self._array = array

    def __call__(self, index: tuple[Any, ...]) -> Lanes:
        return self._b.load(self._array[tuple(np.asarray(i) for i in index)], self.dtype)
