"""Matmul, dot products and their relatives."""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from weft import ops
from weft.eager.functions.deprecated import older
from weft.eager.functions.elementwise.binary import factor_of
from weft.eager.functions.elementwise.from_op import takes
from weft.eager.functions.recall.memory import of_any_sizes, remembering
from weft.eager.functions.reduction.reduce import counted
from weft.eager.tensor.argument import dims_of, either
from weft.eager.tensor.dispatch import Recorded, cast, kind_of, recorded, under_autocast, wrap
from weft.eager.tensor.dtype.promotion import TORCH
from weft.eager.tensor.elementwise import promoted
from weft.eager.tensor.handle import Handle
from weft.errors import DTypeError, GraphError, ShapeError
from weft.ir import dtype as types
from weft.ir.node import Value
from weft.ir.shape import show
from weft.ops.declaration.fact import Autocast
from weft.ops.linalg import vector_product
from weft.ops.reduction import distance

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor

__all__ = [
    "addbmm", "addmm", "addmv", "addr", "baddbmm", "bmm", "cdist", "chain_matmul", "cross", "dot",
    "einsum", "ger", "inner", "kron", "matmul", "mm", "mv", "outer", "tensordot", "trace", "vdot",
]  # fmt: skip

# Matrix products


_matmul = recorded(vector_product.matmul)


WIDE: Final = {
    types.bool_, types.int8, types.int16, types.uint8, types.uint16, types.uint32, types.uint64,
}  # fmt: skip
"""Dtypes without a kernel are computed in int64, whose bits equal those of uint64."""


def _product(run: Recorded, like: Any, *xs: Any, **static: Any) -> Tensor:
    """A matmul of values of one dtype; small integers are computed in int64."""
    if not xs:
        raise ShapeError.here("einsum: expected at least one operand, got none")
    lazies = under_autocast(ops.matmul, promoted(*xs))
    kind = lazies[0].type.dtype
    if kind not in WIDE:
        return run.on(like, *lazies, **static)
    return run.on(like, *[cast(x, types.int64) for x in lazies], **static).to(kind)


@of_any_sizes
def matmul(x: Any, other: Any) -> Tensor:
    """The matrix product; leading axes broadcast, vectors count as a row or a column.

    Raises:
        ShapeError: a scalar, or inner dimensions that differ.
    """
    if isinstance(x, Handle) and x.multiplied is not None:
        return x.multiplied(other)
    a, b = promoted(x, other)
    like = kind_of(x, other)
    for lazy in (a, b):
        if lazy.type.shape == ():
            raise ShapeError.here("matmul: expected tensors of rank 1 or more, got ()")
    if a.type.dtype in WIDE:
        wide = _matmul.on(like, cast(a, types.int64), cast(b, types.int64))
        return wide.to(a.type.dtype)
    return _matmul.on(like, a, b)


def _ranks(name: str, xs: Sequence[Any], ranks: Sequence[int]) -> None:
    for x, rank in zip(xs, ranks, strict=True):
        dims = dims_of(x)
        if len(dims) != rank:
            raise ShapeError.here(
                f"{name}: expected tensors of ranks {', '.join(map(str, ranks))}, got shape "
                f"{show(dims)}; matmul() takes all ranks"
            )


def mm(x: Any, mat2: Any) -> Tensor:
    """The product of two matrices.

    Raises:
        ShapeError: other ranks, or inner dimensions that differ.
    """
    _ranks("mm", (x, mat2), (2, 2))
    return matmul(x, mat2)


def bmm(x: Any, mat2: Any) -> Tensor:
    """Batched matmul: the products of pairs of matrices.

    Raises:
        ShapeError: other ranks, or dimensions that differ.
    """
    _ranks("bmm", (x, mat2), (3, 3))
    if dims_of(x)[0] != dims_of(mat2)[0]:
        raise ShapeError.here(
            f"bmm: expected as many matrices, got {dims_of(x)[0]} and {dims_of(mat2)[0]}"
        )
    return matmul(x, mat2)


def mv(x: Any, vec: Any) -> Tensor:
    """The product of a matrix and a vector."""
    _ranks("mv", (x, vec), (2, 1))
    return matmul(x, vec)


def dot(x: Any, other: Any) -> Tensor:
    """The dot product of two vectors.

    Raises:
        ShapeError: other ranks, or lengths that differ.
    """
    _ranks("dot", (x, other), (1, 1))
    return matmul(x, other)


def vdot(x: Any, other: Any) -> Tensor:
    """The dot product of two vectors, with the first one conjugated.

    Raises:
        ShapeError: other ranks, or lengths that differ.
    """
    _ranks("vdot", (x, other), (1, 1))
    if dims_of(x) != dims_of(other):
        raise ShapeError.here(
            f"vdot: expected vectors of one length, got {dims_of(x)[0]} and {dims_of(other)[0]}"
        )
    return _product(_vecdot, kind_of(x, other), x, other, axis=0)


_added = recorded(vector_product.added)
_plainly_added = recorded(vector_product.plainly_added)


def _with_product(c: Any, x: Any, y: Any, beta: Any, alpha: Any, summed: bool = False) -> Tensor:
    rows, own = dims_of(x), dims_of(c)
    product = (*rows[summed:-1], *dims_of(y)[len(rows) - 1 :])
    pairs = zip(own[::-1], product[::-1], strict=False)
    if len(own) > len(product) or any(a not in (1, n) for a, n in pairs):
        raise ShapeError.here(
            f"addmm: expected an addend that broadcasts to the product's {show(product)}, got "
            f"{show(own)}"
        )
    like = kind_of(c, x, y)
    if type(beta) in (int, float) and beta == 0:  # the input is ignored, NaN included
        c, beta = 0, 1
    dtype = promoted(c, x, y)[0].type.dtype
    beta = factor_of("addmm", "beta", beta, dtype)
    alpha = factor_of("addmm", "alpha", alpha, dtype)
    if beta == 1 and alpha == 1:
        return _product(_plainly_added, like, c, x, y, summed=summed)
    return _product(_added, like, c, x, y, beta, alpha, summed=summed)


@older("beta", "alpha")
def addmm(x: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`beta * x + alpha * (mat1 @ mat2)` for two matrices."""
    _ranks("addmm", (mat1, mat2), (2, 2))
    return _with_product(x, mat1, mat2, beta, alpha)


@older("beta", "alpha")
def addmv(x: Any, mat: Any, vec: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`beta * x + alpha * (mat @ vec)` for a matrix and a vector."""
    _ranks("addmv", (mat, vec), (2, 1))
    return _with_product(x, mat, vec, beta, alpha)


@older("beta", "alpha")
def baddbmm(x: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`beta * x + alpha * (batch1 @ batch2)` for pairs of matrices."""
    _ranks("baddbmm", (batch1, batch2), (3, 3))
    return _with_product(x, batch1, batch2, beta, alpha)


@older("beta", "alpha")
def addbmm(x: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`beta * x + alpha * sum(batch1 @ batch2)`, summed over the pairs of matrices."""
    _ranks("addbmm", (batch1, batch2), (3, 3))
    return _with_product(x, batch1, batch2, beta, alpha, summed=True)


@older("beta", "alpha")
def addr(x: Any, vec1: Any, vec2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """`beta * x + alpha * outer(vec1, vec2)`; for booleans, whether that is not 0."""
    _ranks("addr", (vec1, vec2), (1, 1))
    dtype = promoted(x, vec1, vec2)[0].type.dtype
    for name, factor in (("beta", beta), ("alpha", alpha)):
        fits = {bool: dtype is types.bool_, float: dtype.is_inexact}
        if not fits.get(type(factor), True):
            raise DTypeError.here(
                f"addr: {name}: expected a number like elements of {dtype}, got {factor!r}"
            )
    beta, alpha = factor_of("addr", "beta", beta, dtype), factor_of("addr", "alpha", alpha, dtype)
    added = outer(vec1.to(dtype), vec2.to(dtype)) * alpha
    if type(beta) not in (int, float, bool) or beta != 0:
        added = added + (x * beta if beta != 1 else x)
    return added.to(dtype)


def chain_matmul(*matrices: Any) -> Tensor:
    """The product of several matrices, in the cheapest order."""
    letters = [chr(ord("a") + i) for i in range(len(matrices) + 1)]
    terms = ",".join(letters[i] + letters[i + 1] for i in range(len(matrices)))
    return einsum(f"{terms}->{letters[0]}{letters[-1]}", *matrices)


# Other products


_outer: Final = recorded(ops.outer)
_inner: Final = recorded(ops.inner)
_kron: Final = recorded(ops.kron)
_cross = recorded(ops.cross)


@recorded(autocast=Autocast.LOW)
def _einsum(*xs: Value, spec: str) -> Value:
    return ops.einsum(spec, *xs)


_tensordot = recorded(ops.tensordot, autocast=Autocast.LOW)
_trace = recorded(ops.trace)


def outer(x: Any, vec2: Any) -> Tensor:
    """The outer product of two vectors.

    Raises:
        ShapeError: other ranks.
    """
    _ranks("outer", (x, vec2), (1, 1))
    return _of_pairs(_outer, x, vec2)


ger = outer


def inner(x: Any, other: Any) -> Tensor:
    """The sum of products over the last axes."""
    return _product(_inner, kind_of(x, other), x, other)


def kron(x: Any, other: Any) -> Tensor:
    """The Kronecker product."""
    return _of_pairs(_kron, x, other)


def _of_pairs(product: Recorded, x: Any, y: Any) -> Tensor:
    """Elementwise products; for booleans, logical and."""
    pair = promoted(x, y)
    if pair[0].type.dtype is not types.bool_:
        return product.on(kind_of(x, y), *pair)
    (found,) = product.record([cast(z, types.uint8) for z in pair], {})
    return wrap(cast(found, types.bool_), kind_of(x, y))


def cross(x: Any, other: Any, dim: Any = None, *, axis: Any = None) -> Tensor:
    """The cross product along an axis of size 3, by default the first one.

    Raises:
        ShapeError: no such axis.
    """
    at = either("cross", dim, axis)
    if at is None:
        at = next((i for i, d in enumerate(dims_of(x)) if d == 3), -1)
    return cross_of(x, other, at)


def cross_of(x: Any, other: Any, dim: int) -> Tensor:
    """The cross product along an axis of size 3; other axes broadcast."""
    return _cross.on(kind_of(x, other), *promoted(x, other), axis=dim)


_vecdot = recorded(vector_product.vecdot)


def vecdot(x: Any, y: Any, *, dim: int = -1) -> Tensor:
    """The sum of products along an axis; other axes broadcast."""
    return _product(_vecdot, kind_of(x, y), x, y, axis=dim)


def einsum(equation: Any, *operands: Any) -> Tensor:
    """Einstein summation: products of elements, summed over letters missing in the result.

    Instead of an equation, each operand may be followed by a list of axis numbers, with a last list
    for the result.

    Raises:
        GraphError, ShapeError: an equation that is malformed, or does not fit the operands.

    Example:
        >>> import weft as wf
        >>> wf.einsum("ij,jk->ik", wf.ones((2, 3)), wf.ones((3, 4))).shape
        (2, 4)
    """
    if not isinstance(equation, str):
        equation, operands = _lettered((equation, *operands))
    if re.search(r"\.\s+\.", equation):
        raise GraphError.here(
            f"einsum: expected the points of an ellipsis side by side, got {equation!r}"
        )
    if len(operands) == 1 and isinstance(operands[0], list | tuple):
        operands = tuple(operands[0])
    return _product(_einsum, kind_of(*operands), *operands, spec=equation.replace(" ", ""))


def _lettered(given: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """The equation and operands of a call with lists of axis numbers."""
    count = len(given) // 2 * 2
    letters = {n: letter for n, letter in enumerate(string.ascii_letters)} | {...: "..."}
    unknown = [n for numbers in given[1::2] for n in numbers if n not in letters]
    if unknown:
        raise GraphError.here(
            f"einsum: expected axes numbered from 0 to {len(letters) - 2}, got {unknown[0]}"
        )
    terms = ["".join([letters[n] for n in x]) for x in given[1:count:2]]
    result = "->" + "".join([letters[n] for n in given[-1]]) if len(given) > count else ""
    return ",".join(terms) + result, given[:count:2]


def tensordot(x: Any, other: Any, dims: Any = 2, *, axes: Any = None) -> Tensor:
    """Products summed over axes: the last of `x` with the first of `other`, or given pairs."""
    given = dims if axes is None else axes
    if isinstance(given, Handle):
        given = given.array.tolist()
    if not isinstance(given, int):
        given = tuple([(a,) if isinstance(a, int) else tuple(a) for a in given])
    return _product(_tensordot, kind_of(x, other), x, other, axes=given)


def trace(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """The sum of a diagonal; int64 for integers.

    Raises:
        ShapeError: a tensor that is no matrix; arrays may have more axes.
    """
    if isinstance(x, Handle) and x.rules is TORCH and len(dims_of(x)) != 2:
        raise ShapeError.here(f"trace: expected a matrix, got shape {show(dims_of(x))}")
    return _trace.on(kind_of(x), counted(x), offset=offset, axis1=axis1, axis2=axis2)


# Distances


CDIST_MODES: Final = (
    None, "use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist",
    "donot_use_mm_for_euclid_dist",
)  # fmt: skip


_cdist = recorded(distance.cdist)


def cdist(x1: Any, x2: Any, p: float = 2.0, compute_mode: str | None = None) -> Tensor:
    """The `p`-norm distance between each row of `x1` and each row of `x2`.

    Args:
        p: the order; 0 counts the components that differ.
        compute_mode: as in PyTorch, but without effect: differences are always exact.

    Raises:
        DTypeError: a `p` below 0, or an unknown mode.
    """
    if not p >= 0:
        raise DTypeError.here(f"cdist: expected p of at least 0, got {p}")
    if compute_mode not in CDIST_MODES:
        text = f"cdist: expected compute_mode of {CDIST_MODES}, got {compute_mode!r}"
        raise DTypeError.here(text)
    return _cdist.on(kind_of(x1, x2), *promoted(x1, x2, floats=True), p=float(p))


class Methods(Handle):
    """Products, as methods and as `@`."""

    @remembering
    @of_any_sizes
    def __matmul__(self, other: Any) -> Tensor:
        return matmul(self, other) if takes(other, self) else NotImplemented

    def __rmatmul__(self, other: Any) -> Tensor:
        return matmul(other, self) if takes(other, self) else NotImplemented
