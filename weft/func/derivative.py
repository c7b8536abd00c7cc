"""Jacobians and Hessians."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.eager.functions.creation.constructor import zeros as no_rows
from weft.eager.functions.shape.joining import stack
from weft.eager.record.pending.lazy import Lazy
from weft.eager.tensor.autograd.backward import zeros
from weft.eager.tensor.dispatch import lazy_of, leaf, wrap
from weft.errors import DTypeError
from weft.func.gradient import Argnums, Function, Run, grad, jvp, positions
from weft.func.level import kind_of_leaf
from weft.func.transformed import transformed
from weft.func.tree import LEAF, flatten
from weft.func.vmap import vmap
from weft.ir.shape import known, size

__all__ = ["hessian", "hessian_vector_product", "jacfwd", "jacobian"]


def jacobian(
    fun: Function, argnums: Argnums = 0, has_aux: bool = False, *, chunk_size: int | None = None
) -> Function:
    """The Jacobian: entry [i, j] is the derivative of result element i by argument element j.

    It is computed by reverse mode, all rows at once (see `vmap`) or `chunk_size` of them at a time.
    If that is 1, gradient rules may read values.

    Returns:
        A function that returns, for each result, the structure of the argument, with shapes
        (*result, *argument).

    Raises:
        DTypeError: complex arguments or results, whose derivative is not unique.

    >>> import weft as wf
    >>> jacobian(lambda x: x * x)(wf.tensor([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """

    return rows_of(fun, argnums, has_aux, chunk_size, real=True)


def rows_of(
    fun: Function, argnums: Argnums = 0, has_aux: bool = False, chunk_size: int | None = None,
    real: bool = False,
) -> Function:  # fmt: skip
    """`jacobian`; unless `real` is required, complex numbers give the `vjp` of ones."""

    @transformed(fun, "jacobian")
    def matrix(*args: Any, **kwargs: Any) -> Any:
        run = Run(fun, args, kwargs, argnums, has_aux, "jacobian")
        if real:
            _check_real("jacobian", "arguments", run.variables.values)
            _check_real("jacobian", "results", run.ys)
        rows = [_rows(run, i, chunk_size) for i in range(len(run.ys))]
        found = run.tree.build(rows)
        return (found, run.aux) if has_aux else found

    return matrix


def _check_real(name: str, what: str, values: Sequence[Lazy]) -> None:
    for x in values:
        if x.type.dtype.is_complex:
            raise DTypeError.here(
                f"{name}: expected real {what}, got {x.type.dtype}; take real and imaginary parts "
                f"(view_as_real())"
            )


def _rows(run: Run, i: int, chunk_size: int | None) -> Any:
    """The derivatives of one result by all variables."""
    y = run.ys[i]
    shape = known(y.type.shape)

    def row(g: Any) -> Any:
        gs: list[Lazy] = [lazy_of(g) if j == i else zeros(other) for j, other in enumerate(run.ys)]
        return [wrap(x) for x in run.pull(gs)]

    if not size(shape):
        kinds = [x.type for x in run.variables.values]
        found = [no_rows((0, *known(kind.shape)), dtype=kind.dtype) for kind in kinds]
    elif chunk_size == 1:  # without vmap, so that custom gradient rules may read values
        found = [stack(column) for column in zip(*map(row, _basis(y)), strict=True)]
    else:
        found = vmap(row, randomness="different", chunk_size=chunk_size)(_basis(y))
    shaped = [x.reshape((*shape, *x.shape[1:])) for x in found]
    return run.arguments([run.outside(x.lazy) for x in shaped])


def _basis(x: Lazy) -> Any:
    """A one-hot tensor like `x` for each of its elements."""
    shape = known(x.type.shape)
    count = size(shape)
    return wrap(leaf(np.eye(count, dtype=x.type.dtype.numpy).reshape(count, *shape)))


def jacfwd(
    fun: Function, argnums: Argnums = 0, has_aux: bool = False, *,
    randomness: str = "error", chunk_size: int | None = None,
) -> Function:  # fmt: skip
    """The Jacobian by forward mode, for few argument elements.

    Args:
        randomness, chunk_size: as for `vmap`, over the columns.

    Raises:
        DTypeError: complex arguments.

    >>> import weft as wf
    >>> jacfwd(lambda x: x * x)(wf.tensor([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """

    return columns_of(fun, argnums, has_aux, randomness, chunk_size, real=True)


def columns_of(
    fun: Function, argnums: Argnums = 0, has_aux: bool = False, randomness: str = "error",
    chunk_size: int | None = None, real: bool = False,
) -> Function:  # fmt: skip
    """`jacfwd`; unless `real` is required, complex numbers give the `jvp` of ones."""

    @transformed(fun, "jacfwd")
    def matrix(*args: Any, **kwargs: Any) -> Any:
        columns = _Columns(fun, args, kwargs, argnums, has_aux)
        if real:
            _check_real("jacfwd", "arguments", [x.lazy for x in columns.xs])
        found = columns.results(randomness, chunk_size)
        return (found, columns.aux) if has_aux else found

    return matrix


class _Columns:
    """The derivatives of all results of a function by the elements of some arguments."""

    def __init__(
        self, fun: Function, args: Sequence[Any], kwargs: dict[str, Any], argnums: Argnums,
        has_aux: bool,
    ) -> None:  # fmt: skip
        self.call = fun, args, kwargs
        self.single = isinstance(argnums, int)
        self.chosen = positions(argnums, len(args), "jacfwd")
        leaves, self.tree = flatten([args[i] for i in self.chosen])
        self.xs = tuple([wrap(lazy_of(x), kind_of_leaf(x)) for x in leaves])
        self.has_aux = has_aux
        self.aux: Any = None
        self.result = LEAF

    def _function(self, *values: Any) -> Any:
        """The function of the leaves of the chosen arguments."""
        fun, args, kwargs = self.call
        changed = list(args)
        for i, x in zip(self.chosen, self.tree.build(values), strict=True):
            changed[i] = x
        return fun(*changed, **kwargs)

    def _moved(self, i: int, tangent: Any) -> tuple[list[Any], Any]:
        """The tangent of each result for one of the leaves, and the auxiliary result."""
        still = [wrap(zeros(x.lazy)) for x in self.xs]
        tangents = (*still[:i], tangent, *still[i + 1 :])
        found = jvp(self._function, self.xs, tangents, self.has_aux)
        moved, self.result = flatten(found[1])
        return moved, found[2] if self.has_aux else None

    def _by(self, i: int, randomness: str, chunk_size: int | None) -> list[Any]:
        """The derivatives of each result by one of the leaves."""
        x = self.xs[i]
        column = functools.partial(self._moved, i)
        columns = vmap(column, 0, (-1, None), randomness, chunk_size=chunk_size)
        moved, self.aux = columns(_basis(x.lazy))
        return [y.reshape((*y.shape[:-1], *x.shape)) for y in moved]

    def results(self, randomness: str, chunk_size: int | None) -> Any:
        """Nest the structure of the arguments in that of the results."""
        columns = [self._by(i, randomness, chunk_size) for i in range(len(self.xs))]
        rows = [self.tree.build(row) for row in zip(*columns, strict=True)]
        return self.result.build([row[0] if self.single else tuple(row) for row in rows])


def hessian(fun: Function, argnums: Argnums = 0) -> Function:
    """The Hessian: all second derivatives of a function that returns a scalar.

    >>> import weft as wf
    >>> hessian(lambda x: (x * x * x).sum())(wf.tensor([1.0, 2.0])).tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """
    return jacobian(jacobian(fun, argnums), argnums)


def hessian_vector_product(fun: Function, argnum: int = 0) -> Function:
    """The product of the Hessian with a vector, the last argument, without building the Hessian."""
    gradient = grad(fun, argnum)

    def product(*args: Any, **kwargs: Any) -> Any:
        *primals, vector = args

        def along(x: Any) -> Any:
            return gradient(*primals[:argnum], x, *primals[argnum + 1 :], **kwargs)

        return jvp(along, (primals[argnum],), (vector,))[1]

    return product
