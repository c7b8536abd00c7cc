"""Whole matrices of derivatives."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from weft.eager.call import lazy_of, leaf, wrap
from weft.eager.lazy import Lazy
from weft.eager.walk import zeros
from weft.func.gradient import Argnums, Function, Run, grad, jvp
from weft.func.level import kind_of_leaf
from weft.func.vmap import vmap
from weft.ir.shape import known, size


def jacobian(fun: Function, argnums: Argnums = 0, has_aux: bool = False) -> Function:
    """All derivatives of all results: entry [i, j] is that of result element i by argument j.

    Row by row in reverse mode, all rows at once (see `vmap`).

    Returns:
        A function that gives, for each result, the structure of the argument, with shapes
        (*result, *argument).

    >>> import weft as wf
    >>> jacobian(lambda x: x * x)(wf.tensor([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """

    @functools.wraps(fun)
    def matrix(*args: Any, **kwargs: Any) -> Any:
        run = Run(fun, args, kwargs, argnums, has_aux, "jacobian")
        rows = [_rows(run, i) for i in range(len(run.ys))]
        found = run.tree.build(rows)
        return (found, run.aux) if has_aux else found

    return matrix


def _rows(run: Run, i: int) -> Any:
    """The derivatives of one result by all variables."""
    y = run.ys[i]
    shape = known(y.type.shape)
    count = size(shape)

    def row(g: Any) -> Any:
        gs: list[Lazy] = [lazy_of(g) if j == i else zeros(other) for j, other in enumerate(run.ys)]
        return [wrap(x) for x in run.pull(gs)]

    basis = np.eye(count, dtype=y.type.dtype.numpy).reshape(count, *shape)
    found = vmap(row)(wrap(leaf(basis)))
    shaped = [x.reshape((*shape, *x.shape[1:])) for x in found]
    return run.arguments([run.outside(x.lazy) for x in shaped])


def jacfwd(fun: Function, argnums: int = 0) -> Function:
    """`jacobian` of one argument in forward mode, column by column: for few arguments."""

    @functools.wraps(fun)
    def matrix(*args: Any, **kwargs: Any) -> Any:
        x = wrap(lazy_of(args[argnums]), kind_of_leaf(args[argnums]))
        count = size(x.shape)

        def of_one(value: Any) -> Any:
            return fun(*args[:argnums], value, *args[argnums + 1 :], **kwargs)

        def column(tangent: Any) -> Any:
            return jvp(of_one, (x,), (tangent,))[1]

        basis = np.eye(count, dtype=x.dtype.numpy).reshape(count, *x.shape)
        found = vmap(column, out_axes=-1)(wrap(leaf(basis), x))
        return found.reshape((*found.shape[:-1], *x.shape))

    return matrix


def hessian(fun: Function, argnums: Argnums = 0) -> Function:
    """All second derivatives of a function that returns a scalar.

    >>> import weft as wf
    >>> hessian(lambda x: (x * x * x).sum())(wf.tensor([1.0, 2.0])).tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """
    return jacobian(jacobian(fun, argnums), argnums)


def hessian_vector_product(fun: Function, argnum: int = 0) -> Function:
    """The Hessian times a vector, the last argument, without the Hessian."""
    gradient = grad(fun, argnum)

    def product(*args: Any, **kwargs: Any) -> Any:
        *primals, vector = args

        def along(x: Any) -> Any:
            return gradient(*primals[:argnum], x, *primals[argnum + 1 :], **kwargs)

        return jvp(along, (primals[argnum],), (vector,))[1]

    return product
