"""Arrays of random keys, as `jax.random.key` makes them: each is two words behind their dtype."""

# pyright: reportIncompatibleMethodOverride=false

from __future__ import annotations

from typing import Any, Final

import numpy as np

from weft.eager.tensor.dispatch import wrap
from weft.eager.tensor.size import Size
from weft.jax.array import STRONG, Array, Kind, is_traced

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
            raise (TypeError("len() of unsized object"))
        return self.shape[0]

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
        raise (TypeError("JAX array with PRNGKey dtype cannot be converted to a NumPy array."))


Keys.kind = Keys
_KEYS: Final = Kind(Keys)


def words(keys: Any) -> Any:
    """The words of keys; another array as it is."""
    return wrap(keys.lazy, STRONG) if isinstance(keys, Keys) else keys


def keys_of(x: Array) -> Keys:
    """Keys of these words."""
    return wrap(x.lazy, _KEYS)
