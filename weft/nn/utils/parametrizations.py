"""Ready-made parametrizations: `weight_norm`, `spectral_norm`, `orthogonal`."""

from __future__ import annotations

from typing import Any, TypeVar

from weft.documentation import arguments_of
from weft.eager.functions.creation.arange import eye
from weft.eager.functions.creation.constructor import zeros
from weft.eager.functions.indexing.gather import where
from weft.eager.functions.linalg.factorization import geqrf, orgqr, qr_of
from weft.eager.functions.linalg.solve import matrix_exp, solve
from weft.eager.functions.shape.diagonal import tril
from weft.eager.functions.shape.joining import cat
from weft.eager.tensor.handle import Handle
from weft.errors import ArgumentError, ShapeError
from weft.ir.shape import show
from weft.nn.module.module import Module
from weft.nn.parameter import Buffer
from weft.nn.utils.parametrize import register_parametrization
from weft.nn.utils.weight import divided, leading, norms, singular_vectors, with_norms
from weft.nn.utils.weight import spectral_norm as plain_spectral_norm
from weft.ops.refusal import guard

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]

M = TypeVar("M", bound=Module)
_MAPS = ("matrix_exp", "cayley", "householder")


class _WeightNorm(Module):
    """A weight from its norms (`original0`) and directions (`original1`)."""

    def __init__(self, dim: int | None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, length: Any, direction: Any) -> Any:
        return with_norms(direction, length, dim=self.dim)

    def right_inverse(self, weight: Any) -> tuple[Any, Any]:
        """Norms and directions of a weight."""
        return norms(weight, dim=self.dim), weight


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Train the norm and the direction of a weight separately.

    Args:
        module: the module.
        name: the weight's name.
        dim: the dimension whose entries have a norm each; `None` for one norm.

    Source: Salimans and Kingma, "Weight Normalization" (2016).

    Example:
        >>> from weft import nn
        >>> layer = weight_norm(nn.Linear(2, 3))
        >>> layer.parametrizations.weight.original0.shape
        (3, 1)
    """
    return register_parametrization(module, name, _WeightNorm(dim), unsafe=True)


class _SpectralNorm(Module):
    """A weight divided by its largest singular value, which power iteration estimates."""

    def __init__(self, weight: Any, dim: int, steps: int, eps: float) -> None:
        super().__init__()
        self.dim = dim
        self.steps = steps
        self.eps = eps
        if weight.ndim > 1:
            left, right = leading(weight, dim)
            self._u = Buffer(left)
            self._v = Buffer(right)

    def forward(self, weight: Any) -> Any:
        if weight.ndim == 1:
            return weight / weight.norm().clamp(min=self.eps)
        if self.training and self.steps:
            static = {"dim": self.dim, "steps": self.steps, "eps": self.eps, "right": True}
            vectors = singular_vectors.record((weight, self._v), static)
            Handle.replace_all((self._u, self._v), vectors)
        return divided(weight, self._u, self._v, self.dim)

    def right_inverse(self, value: Any) -> Any:
        """The value itself, which is assumed to have the right norm."""
        return value


@arguments_of(plain_spectral_norm)
def spectral_norm(
    module: M, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12,
    dim: int | None = None,
) -> M:  # fmt: skip
    """Divide a weight by its largest singular value, estimated by power iteration in training.

    Source: Miyato et al., "Spectral Normalization" (2018).
    """
    if n_power_iterations < 1:
        raise ArgumentError.here(
            f"spectral_norm: expected n_power_iterations from 1, got {n_power_iterations}"
        )
    axis = int(getattr(module, "transposed", False)) if dim is None else dim
    made = _SpectralNorm(getattr(module, name), axis, n_power_iterations, eps)
    return register_parametrization(module, name, made)


class _Orthogonal(Module):
    """Matrices with orthonormal columns (or rows, if there are more columns than rows)."""

    def __init__(self, weight: Any, orthogonal_map: str, is_free: bool) -> None:
        super().__init__()
        self.orthogonal_map = orthogonal_map
        self.shape = tuple(weight.shape)
        n = max(weight.shape[-2:])
        start = eye(n, dtype=weight.dtype).expand(*weight.shape[:-2], n, n)
        self.register_buffer("base", Buffer(start) if is_free else None)

    def forward(self, x: Any) -> Any:
        is_wide = x.shape[-2] < x.shape[-1]
        x = x.mT if is_wide else x
        name = self.orthogonal_map
        y = _reflected(x) if name == "householder" else _turned(x, name)
        if self.base is not None:
            y = self.base @ y
        return y.mT if is_wide else y

    def right_inverse(self, value: Any) -> Any:
        """The original that gives an orthogonal matrix; for another matrix, its orthogonal factor.

        Raises:
            NotImplementedError: with `matrix_exp` or `cayley`, and without a base.
            ArgumentError: the shape differs.
        """
        if value.shape != self.shape:
            raise ArgumentError.here(
                f"orthogonal: expected {show(self.shape)}, got {show(value.shape)}"
            )
        if self.base is None and self.orthogonal_map != "householder":
            raise NotImplementedError("orthogonal: use_trivialization=False takes no values")
        tall = value.mT if value.shape[-2] < value.shape[-1] else value
        if self.base is None:
            original = _reflecting(tall)
            return original if tall is value else original.mT
        k = tall.shape[-1]
        q, r = qr_of(tall, "complete")
        signs = r.diagonal(dim1=-2, dim2=-1).sign()
        self.base.copy_(cat([q[..., :k] * signs[..., None, :], q[..., k:]], -1))
        start = zeros(value.shape, dtype=value.dtype)
        if self.orthogonal_map == "householder":
            start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return start


def _turned(x: Any, orthogonal_map: str) -> Any:
    """The first columns of the rotation that is parametrized by the lower triangles of matrices."""
    n, k = x.shape[-2:]
    lower = tril(x)
    if n != k:
        lower = cat([lower, zeros((*x.shape[:-2], n, n - k), dtype=x.dtype)], -1)
    skew = lower - lower.mH
    if orthogonal_map == "matrix_exp":
        turned = matrix_exp(skew)
    else:
        one = eye(n, dtype=x.dtype)
        turned = solve(one - 0.5 * skew, one + 0.5 * skew)
    return turned[..., :k]


def _reflected(x: Any) -> Any:
    """The product of the Householder reflections given by the columns below the diagonal."""
    below = tril(x, -1)
    scales = 2.0 / (1.0 + (below * below).sum(-2))
    signs = x.diagonal(dim1=-2, dim2=-1).detach().sign()
    return orgqr(below, scales) * signs[..., None, :]


def _reflecting(x: Any) -> Any:
    """The inverse of `_reflected`: the original that gives the orthogonal factor of matrices."""
    factors, scales = geqrf(x)
    signs = factors.diagonal(dim1=-2, dim2=-1).sign()
    factors.diagonal(dim1=-2, dim2=-1).copy_(signs * where(scales == 0, -1.0, 1.0))
    return factors


@arguments_of(weight_norm)
def orthogonal(
    module: M, name: str = "weight", orthogonal_map: str | None = None, *,
    use_trivialization: bool = True,
) -> M:  # fmt: skip
    """Keep matrices orthogonal: columns (or rows, if there are fewer) are orthonormal.

    Args:
        orthogonal_map: `matrix_exp`, `cayley` or `householder`; by default `matrix_exp` for square
            matrices and `householder` for others.
        use_trivialization: start from the orthogonal factor of the current weight, and allow
            assignment.

    Raises:
        ArgumentError: an unknown map, or `householder` for complex matrices.
        ShapeError: the weight is not a matrix.

    Source: Lezcano-Casado, "Trivializations for Gradient-Based Optimization on Manifolds" (2019).

    Example:
        >>> import weft as wf
        >>> from weft import nn
        >>> layer = orthogonal(nn.Linear(3, 3))
        >>> wf.allclose(layer.weight @ layer.weight.mT, wf.eye(3), atol=1e-5)
        True
    """
    weight: Any = getattr(module, name)
    if weight.ndim < 2:
        raise ShapeError.here(f"orthogonal: expected matrices, got rank {weight.ndim}")
    is_square = weight.shape[-2] == weight.shape[-1]
    name_of_map = orthogonal_map or ("matrix_exp" if is_square else "householder")
    if name_of_map not in _MAPS:
        raise ArgumentError.here(
            f"orthogonal: expected orthogonal_map {', '.join(_MAPS)}, got {name_of_map!r}"
        )
    if name_of_map == "householder" and weight.is_complex():
        raise ArgumentError.here(
            "orthogonal: householder takes no complex numbers; orthogonal_map='matrix_exp' does"
        )
    made = _Orthogonal(weight, name_of_map, use_trivialization)
    return register_parametrization(module, name, made, unsafe=True)


guard(globals())
