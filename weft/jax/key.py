"""Arrays of random keys, as `jax.random.key` makes them: each is two words behind their dtype."""

# pyright: reportIncompatibleMethodOverride=false

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any, Final, NoReturn

import numpy as np

from weft.eager.tensor.dispatch import wrap
from weft.eager.tensor.size import Size
from weft.func import vmap
from weft.jax.array import STRONG, Array, Kind, is_traced, of_keys, taken

__all__ = ["KEY_DTYPE", "KeyDType", "Keys", "extended", "keys_of", "prng_key", "words"]


class extended(np.generic):
    """The kind of dtypes that are no numbers."""


class prng_key(extended):
    """The kind of dtypes of keys."""


class KeyDType:
    """The dtype of keys of Threefry-2x32."""

    name = "key<fry>"
    itemsize = size = 8
    type = prng_key
    kind = "V"
    is_inexact = is_floating = is_complex = False

    def __repr__(self) -> str:
        return self.name


KEY_DTYPE: Final = KeyDType()


class Keys(Array):
    """An array of keys: its elements are rows of two uint32 words."""

    __slots__ = ()
    __module__ = "jax"

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return keys_of, (words(self),)

    @property
    def dtype(self) -> Any:
        """`key<fry>`."""
        return KEY_DTYPE

    @property
    def shape(self) -> Size:
        """Dimensions of the array of keys."""
        return Size(words(self).shape[:-1])

    @property
    def size(self) -> int:
        """The number of keys."""
        return words(self).size // 2

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    @property
    def T(self) -> Keys:
        """The keys with their axes reversed."""
        return keys_of(words(self).transpose((*range(self.ndim)[::-1], self.ndim)))

    def __eq__(self, other: Any) -> Any:
        return (words(self) == words(other)).all(-1) if isinstance(other, Keys) else NotImplemented

    def __ne__(self, other: Any) -> Any:
        return (words(self) != words(other)).any(-1) if isinstance(other, Keys) else NotImplemented

    __hash__ = Array.__hash__

    def __getitem__(self, key: Any) -> Keys:
        parts = key if isinstance(key, tuple) else (key,)
        whole = (*parts, slice(None)) if any([p is Ellipsis for p in parts]) else parts
        return keys_of(words(self)[whole])

    def reshape(self, *shape: Any, **_: Any) -> Keys:
        """The same keys in another shape."""
        dims = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        return keys_of(words(self).reshape((*dims, 2)))

    def ravel(self, **_: Any) -> Keys:
        """The keys in a row."""
        return self.reshape(-1)

    def flatten(self, order: str = "C") -> Keys:
        """The keys in a row."""
        return self.reshape(-1)

    def __repr__(self) -> str:
        shown = "" if is_traced(self) else f" overlaying:\n{words(self).array}"
        return f"Array({self.shape}, dtype={KEY_DTYPE}){shown}"

    __str__ = __repr__

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("JAX array with PRNGKey dtype cannot be converted to a NumPy array.")


Keys.kind = Keys
_KEYS: Final = Kind(Keys)


def words(keys: Any) -> Any:
    """The words of keys; another array as it is."""
    return wrap(keys.lazy, STRONG) if isinstance(keys, Keys) else keys


def keys_of(x: Array) -> Keys:
    """Keys of these words."""
    return wrap(x.lazy, _KEYS)


_MOVING: Final = """
    array asarray atleast_1d atleast_2d atleast_3d broadcast broadcast_in_dim broadcast_to
    column_stack concat concatenate copy dstack dynamic_index_in_dim dynamic_slice
    dynamic_slice_in_dim dynamic_update_index_in_dim dynamic_update_slice
    dynamic_update_slice_in_dim expand_dims flip fliplr flipud hstack index_in_dim moveaxis
    permute_dims ravel repeat reshape rev roll rollaxis rot90 select slice slice_in_dim split
    squeeze stack swapaxes take tile transpose vsplit vstack where
"""
STRUCTURAL: Final = frozenset(_MOVING.split())
"""Functions that move elements."""
_TOLD: Final[dict[str, Callable[..., Any]]] = {
    "equal": Keys.__eq__,
    "not_equal": Keys.__ne__,
    "eq": Keys.__eq__,
    "ne": Keys.__ne__,
    "iscomplexobj": lambda _: False,
    "isrealobj": lambda _: True,
    "ndim": operator.attrgetter("ndim"),
    "shape": operator.attrgetter("shape"),
}
_NUMERIC: Final = """
    __abs__ __add__ __and__ __bool__ __complex__ __divmod__ __float__ __floordiv__ __ge__ __gt__
    __index__ __int__ __invert__ __le__ __lshift__ __lt__ __matmul__ __mod__ __mul__ __neg__
    __or__ __pos__ __pow__ __radd__ __rand__ __rdivmod__ __rfloordiv__ __rlshift__ __rmatmul__
    __rmod__ __rmul__ __ror__ __rpow__ __rrshift__ __rshift__ __rsub__ __rtruediv__ __rxor__
    __sub__ __truediv__ __xor__ all any argmax argmin argsort astype clip conj cumprod cumsum
    dot item max mean min nonzero prod ptp round searchsorted sort std sum tolist trace var view
"""


def _refused(name: str) -> Callable[..., NoReturn]:
    def method(*_: Any, **__: Any) -> NoReturn:
        raise TypeError(f"{name} does not accept dtype {KEY_DTYPE}.")

    return method


for _name in _NUMERIC.split():
    setattr(Keys, _name, _refused(_name.strip("_")))


def _keys_in(values: Iterable[Any]) -> list[Keys]:
    """The arrays of keys among values, and in lists of them."""
    several = [v if type(v) in (list, tuple) else (v,) for v in values]
    return [x for part in several for x in part if isinstance(x, Keys)]


def _lifted(run: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """A function that moves elements, applied to both words of keys."""
    found = _keys_in((*args, *kwargs.values()))
    if not found:
        return NotImplemented
    name = run.__name__
    if name in _TOLD:
        return _TOLD[name](*map(taken, args))
    if name not in STRUCTURAL:
        raise TypeError(f"{name} does not accept dtype {KEY_DTYPE}.")

    def once(*parts: Any) -> Any:
        left = iter(parts)

        def put(x: Any) -> Any:
            if type(x) in (list, tuple):
                return type(x)(map(put, x))
            return next(left) if isinstance(x, Keys) else x

        return run(*map(put, args), **{name: put(x) for name, x in kwargs.items()})

    result = vmap(once, in_axes=-1, out_axes=-1)(*map(words, found))
    return (
        type(result)(map(keys_of, result)) if isinstance(result, tuple | list) else keys_of(result)
    )


of_keys.append(_lifted)
