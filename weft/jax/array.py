"""JAX's array: immutable, float32 and int32 by default, with weak types of Python numbers."""

# pyright: reportIncompatibleMethodOverride=false, reportIncompatibleVariableOverride=false
# JAX's methods take other arguments than PyTorch's of the same name.

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn, TypeVar

import numpy as np

from weft.eager.record.memory.array_value import leaf
from weft.eager.record.pending.state import trace
from weft.eager.tensor.dispatch import cast, wrap
from weft.eager.tensor.dtype.promotion import complex_of
from weft.eager.tensor.handle import Handle
from weft.eager.tensor.tensor import Tensor
from weft.errors import DTypeError, nameless
from weft.ir import dtype as types
from weft.ir.dtype import DType, is_number
from weft.ir.node import TensorType
from weft.ir.shape import known
from weft.jax.config import config
from weft.jax.place import CPU, PLACE, Device, Shard, SingleDeviceSharding
from weft.jax.rules import NARROW, JaxRules
from weft.jax.rules import canonical as canonical
from weft.numpy.array import ndarray

NUMBERS: Final = (bool, int, float, complex)
_WEAK_NUMBERS: Final = NUMBERS[1:]


class Array(ndarray):
    """An immutable array whose operations are recorded, and computed when a value is read."""

    __slots__ = ()
    __module__ = "jaxlib._jax"  # packages tell arrays by the name of their class
    rules: ClassVar[JaxRules] = JaxRules()
    weak: ClassVar[bool] = False
    at: Any  # set by `weft.jax.at`
    astype: Callable[..., Array]  # set by `weft.jax.numpy.method`

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return _loaded, (self.array, self.weak)

    if TYPE_CHECKING:  # operators are the tensor's, and give arrays of this class

        def __getitem__(self, key: Any) -> Array: ...
        def __abs__(self) -> Array: ...
        def __invert__(self) -> Array: ...
        def __neg__(self) -> Array: ...
        def __pos__(self) -> Array: ...
        def __add__(self, other: Any) -> Array: ...
        def __sub__(self, other: Any) -> Array: ...
        def __mul__(self, other: Any) -> Array: ...
        def __truediv__(self, other: Any) -> Array: ...
        def __floordiv__(self, other: Any) -> Array: ...
        def __mod__(self, other: Any) -> Array: ...
        def __pow__(self, other: Any) -> Array: ...
        def __matmul__(self, other: Any) -> Array: ...
        def __and__(self, other: Any) -> Array: ...
        def __or__(self, other: Any) -> Array: ...
        def __xor__(self, other: Any) -> Array: ...
        def __lshift__(self, other: Any) -> Array: ...
        def __rshift__(self, other: Any) -> Array: ...
        def __radd__(self, other: Any) -> Array: ...
        def __rsub__(self, other: Any) -> Array: ...
        def __rmul__(self, other: Any) -> Array: ...
        def __rtruediv__(self, other: Any) -> Array: ...
        def __rfloordiv__(self, other: Any) -> Array: ...
        def __rmod__(self, other: Any) -> Array: ...
        def __rpow__(self, other: Any) -> Array: ...
        def __rmatmul__(self, other: Any) -> Array: ...
        def __rand__(self, other: Any) -> Array: ...
        def __ror__(self, other: Any) -> Array: ...
        def __rxor__(self, other: Any) -> Array: ...
        def __rlshift__(self, other: Any) -> Array: ...
        def __rrshift__(self, other: Any) -> Array: ...
        def __lt__(self, other: Any) -> Array: ...
        def __le__(self, other: Any) -> Array: ...
        def __gt__(self, other: Any) -> Array: ...
        def __ge__(self, other: Any) -> Array: ...
        def __eq__(self, other: Any) -> Array: ...
        def __ne__(self, other: Any) -> Array: ...

    @property
    def weak_type(self) -> bool:
        """Whether its dtype gives way to that of others, as a Python number's does."""
        return self.weak

    @property
    def aval(self) -> Any:
        """The shape and dtype."""
        return self

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.itemsize

    @property
    def is_fully_addressable(self) -> bool:
        """Whether this process holds all of it: it does."""
        return True

    def block_until_ready(self) -> Array:
        """The array itself, computed; in a function that is being traced, as it is."""
        if not trace.now.depth:
            _ = self.array
        return self

    def copy_to_host_async(self) -> None:
        """Nothing: values are on the host."""

    @property
    def device(self) -> Device:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The device that holds it."""
        return CPU

    def devices(self) -> set[Device]:
        """The devices that hold it."""
        return {CPU}

    @property
    def sharding(self) -> SingleDeviceSharding:
        """Where its parts lie: all of it on the one device."""
        return PLACE

    @property
    def addressable_shards(self) -> list[Shard]:
        """The parts on the devices of this process: one, the array itself."""
        return [Shard(self)]

    global_shards = addressable_shards

    def unsafe_buffer_pointer(self) -> int:
        """The address of its memory."""
        return self.array.ctypes.data

    def __iter__(self) -> Any:
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        return iter([self[i] for i in range(self.shape[0])])

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise TypeError(
            "JAX arrays are immutable and do not support in-place item assignment. Instead of "
            "x[idx] = y, use x = x.at[idx].set(y) or another .at[] method: "
            "https://docs.jax.dev/en/latest/_autosummary/jax.numpy.ndarray.at.html"
        )

    def __round__(self, ndigits: int | None = None) -> Any:
        return self.round(ndigits or 0)

    def __hash__(self) -> NoReturn:
        raise TypeError(f"unhashable type: '{type(self).__name__}'")

    def __repr__(self) -> str:
        if is_traced(self):
            return self._traced()
        x = self.array
        inner = np.array2string(x, separator=", ", prefix="Array(")
        weak = ", weak_type=True" if self.weak else ""
        shape = f", shape={x.shape}" if not x.size else ""
        return f"Array({inner}{shape}, dtype={self.dtype}{weak})"

    def __str__(self) -> str:
        return self._traced() if is_traced(self) else str(self.array)

    def __format__(self, spec: str) -> str:
        if self.ndim:
            return format(self.array, spec)
        return str(self) if is_traced(self) else format(self.array[()], spec)

    def _traced(self) -> str:
        return f"JitTracer({self.dtype}[{','.join(map(str, self.shape))}])"


def is_traced(x: Array) -> bool:
    """Whether an array has no value yet, as the function that makes it is being traced."""
    try:
        return not hasattr(x.array, "dtype")
    except Exception:
        return True


class Weak(Array):
    """An array whose dtype gives way to that of others: of Python numbers only."""

    __slots__ = ()
    __module__ = "jaxlib._jax"
    weak = True


Array.kind = Array
Weak.kind = Weak
Array.__name__ = Weak.__name__ = Array.__qualname__ = Weak.__qualname__ = "ArrayImpl"

_BINARY: Final = (
    "add sub mul truediv floordiv mod pow and or xor lt le gt ge eq ne lshift rshift divmod matmul"
)
_ARITHMETIC: Final = "add sub mul truediv floordiv mod"
_REFLECTED: Final = "add sub mul truediv floordiv mod pow and or xor lshift rshift divmod matmul"


def _operator(name: str) -> Callable[[Any, Any], Any]:
    plain = getattr(ndarray, name)

    def method(self: Weak, other: Any) -> Any:
        if isinstance(other, Weak | bool | int | float | complex):
            found = plain(self, other)
            return found if found is NotImplemented else _comparison(name, found)
        if isinstance(other, Array):
            firm, own = other.lazy.type.dtype, self.lazy.type.dtype
            if _rises(firm, own):
                return _comparison(name, plain(self, wrap(cast(other.lazy, own), _WEAK)))
            return plain(beside(self, firm), other)
        return plain(strong(self), other)

    method.__name__ = name
    return method


def _rises(firm: DType, weak: DType) -> bool:
    """Whether a weak dtype of a higher kind makes the result weak: of integers and booleans."""
    return weak.is_inexact if firm.is_integer else firm is types.bool_ and weak is not types.bool_


def _with_number(name: str) -> Callable[[Any, Any], Any]:
    """An operator of arrays, which Python's numbers of a higher kind make weak."""
    plain = getattr(ndarray, name)

    def method(self: Array, other: Any) -> Any:
        if other.__class__ in _WEAK_NUMBERS and not (dtype := self.lazy.type.dtype).is_inexact:
            own = Array.rules.number(other, types.bool_)
            if _rises(dtype, own):
                return plain(wrap(cast(self.lazy, own), _WEAK), other)
        return plain(self, other)

    method.__name__ = name
    return method


def _comparison(name: str, found: Any) -> Any:
    return (
        strong(found)
        if name in ("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__")
        else found
    )


for _name in ("pow", *[f"{r}{n}" for r in ("", "r") for n in _ARITHMETIC.split()]):
    setattr(Array, f"__{_name}__", _with_number(f"__{_name}__"))
for _name in _BINARY.split():
    setattr(Weak, f"__{_name}__", _operator(f"__{_name}__"))
for _name in _REFLECTED.split():
    setattr(Weak, f"__r{_name}__", _operator(f"__r{_name}__"))
Weak.__hash__ = Array.__hash__  # type: ignore[method-assign]


def _changed(name: str) -> Callable[[Any, Any], Any]:
    """`x += y` as `x = x + y`: no array changes."""
    plain = f"__{name}__"

    def method(self: Any, other: Any) -> Any:
        return getattr(self, plain)(other)

    method.__name__ = f"__i{name}__"
    return method


for _name in (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift",
    "rshift", "matmul",
):  # fmt: skip
    setattr(Array, f"__i{_name}__", _changed(_name))


def strong(x: Any) -> Any:
    """An array whose type does not give way."""
    return wrap(x.lazy, STRONG) if isinstance(x, Weak) else x


def weakened(x: Any) -> Any:
    """An array whose type gives way."""
    return wrap(x.lazy, _WEAK)


class Kind:
    """Stands for an array where only the class of results matters."""

    def __init__(self, kind: type[Any]) -> None:
        self.kind = kind


STRONG: Final = Kind(Array)
_WEAK: Final = Kind(Weak)


def beside(x: Weak, dtype: DType) -> Array:
    """A weak array as it takes part in an operation with a strong one of a dtype."""
    own = x.lazy.type.dtype
    if "biufc".index(own.kind.replace("u", "i")) <= "biufc".index(dtype.kind.replace("u", "i")):
        to = dtype
    elif own.is_complex:
        to = complex_of(Array.rules.floating(dtype))
    else:
        to = own
    return wrap(cast(x.lazy, to), STRONG)


def of_number(x: Any) -> Weak:
    """A Python number as a weak array."""
    if isinstance(x, bool):
        return wrap(leaf(np.array(x)), STRONG)
    dtype = canonical(np.result_type(type(x)) if type(x) is not int else np.int64)
    try:
        return wrap(leaf(np.array(x, dtype.numpy)), _WEAK)
    except OverflowError:
        text = f"Python int {x} too large to convert to {dtype}"
        raise OverflowError(text) from None


def _loaded(array: Any, weak: bool) -> Array:
    """An array that was pickled."""
    return wrap(leaf(array), Weak if weak else Array)


def of_array(x: Any) -> Array:
    """A NumPy array, scalar, or another tensor as an array of 32 bits unless x64 is enabled."""
    if isinstance(x, Handle):
        y = cast(x.lazy, canonical(x.lazy.type.dtype))
        return wrap(y, STRONG)
    if not is_number(x.dtype.newbyteorder("=")):
        text = f"Value '{x}' with dtype {x.dtype} is not a valid JAX array type. Only arrays of "
        raise nameless(DTypeError(text + "numeric types are supported by JAX."))
    dtype = canonical(x.dtype.newbyteorder("="))
    return wrap(leaf(np.array(x, dtype.numpy)), STRONG)


def taken(x: Any) -> Any:
    """An argument of a function: NumPy's arrays and other tensors as arrays, others as they are."""
    if isinstance(x, Array):
        return x
    if isinstance(x, np.ndarray | np.generic) and not isinstance(x, np.flexible):
        return x if isinstance(x, np.ndarray) and x.dtype == object else of_array(x)
    if isinstance(x, Handle):
        return of_array(x)
    convert: Any = getattr(x, "__jax_array__", None)
    return x if convert is None else convert()


def as_array(x: Any) -> Any:
    """A leaf of a pytree as an array: numbers are weak; no numbers stay as they are."""
    return of_number(x) if type(x) in (int, float, complex) else taken(x)


def given(x: Any) -> Any:
    """A result of a function: tensors as arrays; in tuples, lists and named tuples, too."""
    if isinstance(x, Handle):
        if isinstance(x, Array) and (config.jax_enable_x64 or x.lazy.type.dtype not in NARROW):
            return x
        return of_array(x)
    if isinstance(x, np.ndarray):
        return of_array(x)
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*map(given, x))  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(x, tuple | list):
        return type(x)(map(given, x))  # pyright: ignore
    return x


def _several(x: Any) -> Any:
    if type(x) in (list, tuple):
        return type(x)(map(_several, x))
    return taken(x)


_FIRST: Final = ("a", "m", "x1", "array", "prototype")
"""JAX's names of the first argument, which is `x` in `weft.numpy`."""


F = TypeVar("F", bound=Callable[..., Any])
of_keys: Final[list[Callable[[Callable[..., Any], Any, Any], Any]]] = []
"""How functions treat arrays of keys, `NotImplemented` for others; empty until there are keys."""


def of_keys_too(function: F) -> F:
    """The function, which also moves arrays of keys, or refuses them."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        for lifted in of_keys:
            if (result := lifted(function, args, kwargs)) is not NotImplemented:
                return result
        return function(*args, **kwargs)

    return run  # pyright: ignore[reportReturnType]


ALL: Final = slice(None)
"""All arguments tell whether a result is weak."""


def _leaves(x: Any) -> list[Any]:
    """Items of nested lists."""
    return [y for each in x for y in _leaves(each)] if type(x) in (list, tuple) else [x]


def _beside(x: Any, dtype: DType) -> Any:
    """Weak arrays, also in nested lists, as they are beside a strong dtype."""
    if type(x) in (list, tuple):
        return type(x)([_beside(y, dtype) for y in x])
    return beside(x, dtype) if isinstance(x, Weak) else x


def _softens(told: Sequence[Any], firm: Sequence[TensorType]) -> bool:
    """Whether the result of these arguments is weak: none is strong, or a weak one rises above."""
    weak = [x.lazy.type.dtype for x in told if isinstance(x, Weak)]
    weak += [Array.rules.number(x, types.bool_) for x in told if type(x) in NUMBERS]
    if not firm:
        return len(weak) == len(told) > 0
    strongest = Array.rules.result(firm)
    return any([_rises(strongest, dtype) for dtype in weak])


def jaxed(function: Callable[..., Any], weak: slice | None = None) -> Callable[..., Any]:
    """A function of arrays of `weft.numpy` or of tensors as one of JAX's arrays.

    Args:
        weak: the arguments that make a result weak where all of them are weak or numbers;
            `None` if it never is.
    """

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        for lifted in of_keys:
            if (result := lifted(run, args, kwargs)) is not NotImplemented:
                return result
        if kwargs:
            kwargs = {k: _several(v) for k, v in kwargs.items() if k != "out_sharding"}
            if not args:
                args = tuple([kwargs.pop(n) for n in _FIRST if n in kwargs][:1])
        xs = list(map(_several, args))
        told = _leaves(xs[weak or ALL])
        firm = [x.lazy.type for x in told if isinstance(x, Array) and not x.weak]
        if any([isinstance(x, Weak) for x in told]):
            if firm:
                dtype = Array.rules.result(firm)
                xs = [_beside(x, dtype) for x in xs]
            elif weak is None:
                xs = list(map(strong, xs))
        found = given(function(*xs, **kwargs))
        if weak is None or not isinstance(found, Array) or "dtype" in kwargs:
            return found
        soft = found.dtype is not types.bool_ and _softens(told, firm)
        return weakened(found) if soft else found

    return run


def shape_of(x: Any) -> tuple[int, ...]:
    """The shape of an array."""
    return known(x.lazy.type.shape)


__all__ = ["Array", "Tensor"]
