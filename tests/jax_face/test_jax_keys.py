"""Keys with a dtype of their own: JAX's numbers, and the shapes of arrays of keys."""

import numpy as np
import pytest

import weft.jax as jax
import weft.jax.numpy as jnp
from weft.jax import lax, random


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


def test_keys_are_moved_and_compared_whole() -> None:
    keys, mask = random.split(random.key(0), 3), jnp.array([True, False, True])
    data = random.key_data
    moved = {
        "where": jnp.where(mask, keys, keys[::-1]),
        "stack": jnp.stack([keys, keys]),
        "broadcast": jnp.broadcast_to(keys, (2, 3)),
        "squeeze": jnp.squeeze(keys[None]),
        "index": lax.dynamic_index_in_dim(keys, 1, keepdims=False),
        "T": jnp.stack([keys, keys]).T,
    }
    words = np.asarray(data(keys))
    assert data(moved["where"]).tolist() == np.where([[1], [0], [1]], words, words[::-1]).tolist()
    assert moved["stack"].shape == moved["broadcast"].shape == (2, 3)
    assert data(moved["squeeze"]).tolist() == words.tolist()
    assert data(moved["index"]).tolist() == words[1].tolist() and moved["T"].shape == (3, 2)
    assert (keys == keys).tolist() == [True] * 3 and (keys != keys[0]).tolist() == [
        False,
        True,
        True,
    ]


def test_arithmetic_of_keys_raises() -> None:
    keys = random.split(random.key(0), 3)
    for fails in (
        lambda: keys + 1, lambda: 1 - keys, lambda: jnp.exp(keys), lambda: jnp.sum(keys),
        lambda: keys.sum(), lambda: keys.astype("float32"), lambda: bool(keys[0]),
    ):  # fmt: skip
        with pytest.raises(TypeError, match="key<fry>"):
            fails()
