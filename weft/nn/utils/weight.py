"""Weights computed from other parameters before each call: `weight_norm`, `spectral_norm`."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from weft.documentation import arguments_of
from weft.eager.record.pending.state import compute, trace
from weft.eager.tensor.autograd.custom_function import Function
from weft.eager.tensor.dispatch import leaf, recorded, wrap
from weft.eager.tensor.handle import Handle
from weft.errors import ArgumentError
from weft.nn.module.module import Module
from weft.nn.parameter import Buffer, Parameter
from weft.ops.linalg import power_iteration
from weft.ops.reduction import norm

__all__ = ["remove_spectral_norm", "remove_weight_norm", "spectral_norm", "weight_norm"]

M = TypeVar("M", bound=Module)


with_norms = recorded(norm.with_norms)
norms = recorded(differentiable=False)(norm.slice_norms)


class _Weight:
    """A forward pre-hook that computes a weight of a module from its parameters."""

    def __init__(self, name: str) -> None:
        self.name = name

    def value(self, module: Any) -> Any:
        """The weight."""
        raise NotImplementedError

    def __call__(self, module: Any, args: Any) -> None:
        setattr(module, self.name, self.value(module))


def _enter(module: Module, hook: _Weight) -> None:
    """Compute the weight now and before each call."""
    hook(module, None)
    handle = module.register_forward_pre_hook(hook)
    object.__setattr__(module, _key(hook), handle)


def _key(hook: _Weight) -> str:
    return f"_{type(hook).__name__.strip('_').lower()}_{hook.name}"


def _leave(module: Module, name: str, cls: type[_Weight]) -> Any:
    """Remove a module's hook, and return it."""
    key = _key(cls(name))
    handle = module.__dict__.pop(key, None)
    if handle is None:
        raise ArgumentError.here(
            f"{cls.__name__.strip('_')}: there is none of {name!r} in {type(module).__name__}"
        )
    hooks = module._hooks  # pyright: ignore[reportPrivateUsage]
    assert hooks is not None
    hook = hooks.before[handle.id]
    handle.remove()
    return hook


class _WeightNorm(_Weight):
    def __init__(self, name: str, dim: int | None = 0) -> None:
        super().__init__(name)
        self.dim = dim

    def value(self, module: Any) -> Any:
        v, g = getattr(module, f"{self.name}_v"), getattr(module, f"{self.name}_g")
        return with_norms(v, g, dim=self.dim)


def weight_norm(module: M, name: str = "weight", dim: int | None = 0) -> M:
    """Split a weight into norm `weight_g` and direction `weight_v`, which are trained.

    Args:
        module: the module.
        name: the weight's name.
        dim: the dimension whose entries have a norm each; `None` for one norm.

    Raises:
        ArgumentError: the weight is already split.

    Source: Salimans and Kingma, "Weight Normalization" (2016).
    """
    if f"{name}_v" in dict(module.named_parameters(recurse=False)):
        raise ArgumentError.here(f"weight_norm: {name!r} is split already")
    weight = module.get_parameter(name)
    sizes = norms(weight, dim=dim)
    delattr(module, name)
    module.register_parameter(f"{name}_g", Parameter(sizes))
    module.register_parameter(f"{name}_v", Parameter(weight))
    _enter(module, _WeightNorm(name, dim))
    return module


@arguments_of(weight_norm)
def remove_weight_norm(module: M, name: str = "weight") -> M:
    """Make the weight a parameter again."""
    hook = _leave(module, name, _WeightNorm)
    value = hook.value(module)
    for part in (f"{name}_g", f"{name}_v"):
        delattr(module, part)
    delattr(module, name)
    module.register_parameter(name, Parameter(value))
    return module


singular_vectors = recorded(differentiable=False)(power_iteration.singular_vectors)
_singular_value = recorded(power_iteration.singular_value)


def divided(weight: Any, u: Any, v: Any, dim: int) -> Any:
    """A weight divided by its largest singular value, as the buffers `u` and `v` give it.

    The gradient needs the vectors as they are now, though the next call changes them.
    """
    u, v = u.clone(), v.clone()
    if trace.now.depth:  # there, recorded values never change
        return weight / _singular_value(weight, u, v, dim=dim)
    quotient = _Divided.apply(weight, u, v, dim)
    # no backward pass will keep the vectors, so the quotient is computed now
    if trace.now.grad_mode and not quotient.lazy.tracked:
        compute([quotient.lazy])
    return quotient


class _Divided(Function):
    """The quotient; saves the vectors for the backward pass."""

    @staticmethod
    def forward(ctx: Any, weight: Any, u: Any, v: Any, dim: int) -> Any:
        """The quotient."""
        ctx.save_for_backward(weight, u, v)
        ctx.dim = dim
        return weight / _singular_value(weight, u, v, dim=dim)

    @staticmethod
    def backward(ctx: Any, g: Any) -> tuple[Any, ...]:
        """The gradients through the numerator and through the singular value."""
        weight, u, v = ctx.saved_tensors
        size = _singular_value(weight, u, v, dim=ctx.dim)
        rest = [n for i, n in enumerate(weight.shape) if i != ctx.dim % weight.ndim]
        outer = (u[:, None] * v).reshape(-1, *rest).movedim(0, ctx.dim)
        return g / size - (g * weight).sum() / (size * size) * outer, None, None, None


def leading(weight: Any, axis: int) -> tuple[Any, Any]:
    """The singular vectors of a weight's largest singular value, as of a matrix."""
    matrix = np.moveaxis(weight.array, axis, 0).reshape(weight.shape[axis], -1)
    u, _, v = np.linalg.svd(matrix.astype(np.float64), full_matrices=False)
    dtype = weight.dtype.numpy
    left, right = (wrap(leaf(np.ascontiguousarray(x, dtype), weight.lazy)) for x in (u[:, 0], v[0]))
    return left, right


class _SpectralNorm(_Weight):
    def __init__(self, name: str, steps: int = 1, eps: float = 1e-12, dim: int = 0) -> None:
        super().__init__(name)
        self.steps = steps
        self.eps = eps
        self.dim = dim

    def value(self, module: Any) -> Any:
        weight = getattr(module, f"{self.name}_orig")
        u, v = (getattr(module, f"{self.name}_{part}") for part in "uv")
        if module.training and self.steps:
            vectors = singular_vectors.record(
                (weight, u), {"dim": self.dim, "steps": self.steps, "eps": self.eps}
            )
            Handle.replace_all((u, v), vectors)
        return divided(weight, u, v, self.dim)


@arguments_of(weight_norm)
def spectral_norm(
    module: M, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12,
    dim: int | None = None,
) -> M:  # fmt: skip
    """Divide a weight by its largest singular value, estimated by power iteration in training.

    Args:
        n_power_iterations: how many iterations each call in training makes.
        eps: the least norm, so that no division by 0 occurs.
        dim: the output dimension; by default 1 for transposed convolutions, else 0.

    Source: Miyato et al., "Spectral Normalization" (2018).
    """
    weight = module.get_parameter(name)
    axis = int(getattr(module, "transposed", False)) if dim is None else dim
    vectors = leading(weight, axis)
    delattr(module, name)
    module.register_parameter(f"{name}_orig", Parameter(weight))
    for part, vector in zip("uv", vectors, strict=True):
        module.register_buffer(f"{name}_{part}", Buffer(vector))
    _enter(module, _SpectralNorm(name, n_power_iterations, eps, axis))
    return module


@arguments_of(weight_norm)
def remove_spectral_norm(module: M, name: str = "weight") -> M:
    """Make the weight, with its current value, a parameter again."""
    hook = _leave(module, name, _SpectralNorm)
    training, module.training = module.training, False
    value = hook.value(module)
    module.training = training
    for part in ("orig", "u", "v"):
        delattr(module, f"{name}_{part}")
    delattr(module, name)
    module.register_parameter(name, Parameter(value))
    return module
