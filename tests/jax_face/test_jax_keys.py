"""Keys with a dtype of their own: JAX's numbers, and the shapes of arrays of keys."""

import numpy as np
import pytest

import weft.jax as jax
import weft.jax.numpy as jnp
from weft.jax import random


def test_words_of_keys_are_those_of_jax() -> None:
    keys = random.split(random.key(1), 3)
    assert (keys.shape, keys.ndim, len(keys), str(keys.dtype)) == ((3,), 1, 3, "key<fry>")
    assert random.key_data(keys[0]).tolist() == [507451445, 1853169794]
    assert random.key_data(keys).tolist() == random.split(random.PRNGKey(1), 3).tolist()


def test_keys_pass_through_transformations_as_keys() -> None:
    keys = random.split(random.key(1), 3)
    plain = random.split(random.PRNGKey(1), 3)

    def drawn(key: jax.Array) -> jax.Array:
        return random.normal(key, (2,))

    assert jax.vmap(drawn)(keys).tolist() == jax.vmap(drawn)(plain).tolist()
    last, rows = jax.lax.scan(lambda k, e: (random.fold_in(k, 1), random.split(e)), keys[0], keys)
    assert (last.shape, rows.shape) == ((), (3, 2))
    assert jax.jit(lambda k: k.reshape(3, 1)[..., 0])(keys).shape == (3,)


def test_shapes_of_keys_are_told_without_words() -> None:
    told = jax.eval_shape(lambda k: random.split(k, 4), random.key(0))
    assert str(told) == "ShapeDtypeStruct(shape=(4,), dtype=key<fry>)"
    assert jax.eval_shape(lambda k: k[None], told).shape == (1, 4)


def test_kinds_of_keys() -> None:
    kind = random.key(0).dtype
    assert jnp.issubdtype(kind, jax.dtypes.prng_key)
    assert not jnp.issubdtype(kind, jnp.floating)
    assert not jnp.issubdtype(random.PRNGKey(0).dtype, jax.dtypes.prng_key)


def test_keys_are_no_numbers() -> None:
    with pytest.raises(TypeError, match="cannot be converted to a NumPy array"):
        np.asarray(random.key(0))
