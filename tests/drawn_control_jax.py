"""The programs of `drawn_control`, run by JAX."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from drawn_control import Outside, Program, close, of_weft

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")


class Jax:
    """JAX as a library of programs."""

    log, sqrt, exp, tanh, sin, arcsin = jnp.log, jnp.sqrt, jnp.exp, jnp.tanh, jnp.sin, jnp.arcsin
    cond, switch, while_loop, scan = (
        jax.lax.cond, jax.lax.switch, jax.lax.while_loop, jax.lax.scan,
    )  # fmt: skip
    floor_divide, remainder = jnp.floor_divide, jnp.remainder
    take = staticmethod(lambda table, i: table[i])
    integer = staticmethod(lambda x: x.astype(jnp.int64))


def check(seed: int, size: int = 4, depth: int = 2) -> None:
    """Values, tangents and, without loops of unknown length, gradients: Weft's against JAX's.

    Raises:
        AssertionError: they differ.
    """
    program = Program(seed, depth)
    own, shared = program.arrays(size)

    def one(x: Any, row: Any, n: Any, *shared: Any) -> Any:
        return program(Jax, x, row, n, Outside(*shared))

    many = jax.vmap(one, (0, 0, 0, None, None, None, None))

    def total(x: Any, row: Any, *shared: Any) -> Any:
        return many(x, row, own[2], *shared).sum()

    found = of_weft(program, own, shared)
    own, shared = ([*map(jnp.asarray, arrays)] for arrays in (own, shared))
    close("values beside JAX", found.values, np.asarray(many(*own, *shared)))
    inputs = (own[0], own[1], *shared)
    moves = tuple([jnp.full_like(x, 0.5) for x in inputs])
    close("tangent beside JAX", found.tangent, np.asarray(jax.jvp(total, inputs, moves)[1]))
    if not program.loops:  # JAX has no gradient of those
        slopes = jax.grad(total, tuple(range(6)))(*inputs)
        for i, (a, b) in enumerate(zip(found.slopes, slopes, strict=True)):
            close(f"gradient {i} beside JAX", a, np.asarray(b))
