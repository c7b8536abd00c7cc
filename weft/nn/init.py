"""Initialization of parameters, in place: `init.xavier_uniform_(layer.weight)`.

The numbers are drawn by NumPy, in one stream per call that `weft.manual_seed` determines. A
parameter is initialized once, so compiling a program for each shape would cost more than it saves.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, TypeVar, cast

import numpy as np

from weft.documentation import arguments_of, named
from weft.eager.functions.random.generator import Generator, default_generator
from weft.eager.record.memory import memory_pool
from weft.eager.tensor.dispatch import leaf
from weft.errors import ArgumentError, ShapeError, WeftError
from weft.ir.shape import show
from weft.ops.refusal import refusing
from weft.ops.warning import warn

__all__ = [
    "calculate_gain", "constant", "constant_", "dirac", "dirac_", "eye", "eye_", "kaiming_normal",
    "kaiming_normal_", "kaiming_uniform", "kaiming_uniform_", "normal", "normal_", "ones_",
    "orthogonal", "orthogonal_", "sparse", "sparse_", "trunc_normal_", "uniform", "uniform_",
    "xavier_normal", "xavier_normal_", "xavier_uniform", "xavier_uniform_", "zeros_",
]  # fmt: skip

Array = np.ndarray[Any, Any]
F = TypeVar("F", bound=Callable[..., Any])


_skipping: ContextVar[bool] = ContextVar("skipping", default=False)


@contextmanager
def skipped() -> Iterator[None]:
    """Inside, the functions of this module leave tensors unchanged."""
    token = _skipping.set(True)
    try:
        yield
    finally:
        _skipping.reset(token)


def initializer(function: F) -> F:
    """Marks a function that initializes a tensor; it does nothing inside `skipped`."""

    @functools.wraps(function)
    def run(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        return tensor if _skipping.get() else function(tensor, *args, **kwargs)

    return refusing(cast(F, run))


def _fill(tensor: Any, values: Array | float) -> Any:
    """Set a tensor's values, even if it requires a gradient."""
    dtype = tensor.dtype.numpy
    if not isinstance(values, np.ndarray):
        values = np.full(tensor.shape, values, dtype)
    tensor.replace(leaf(memory_pool.copied(values.reshape(tensor.shape), dtype), tensor.lazy))
    return tensor


def _source(generator: Generator | None) -> np.random.Generator:
    """A NumPy generator for one call."""
    key = (default_generator if generator is None else generator).next()
    return np.random.Generator(np.random.SFC64(key))  # NumPy's fastest


def _width(tensor: Any) -> Any:
    """The type to draw in: float32, except for float64."""
    return np.float64 if tensor.dtype.size == 8 else np.float32


@refusing
def calculate_gain(nonlinearity: str, param: Any = None) -> float:
    """The gain that keeps the scale of activations through a nonlinearity.

    Args:
        nonlinearity: the name of a function or layer: `linear`, `conv1d` to `conv_transpose3d`,
            `sigmoid`, `tanh`, `relu`, `selu` or `leaky_relu`.
        param: the slope of `leaky_relu` below 0; by default 0.01.

    Raises:
        ArgumentError: the nonlinearity is unknown.
    """
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, int | float):
            raise ArgumentError.here(f"calculate_gain: expected a number as slope, got {param!r}")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity not in _GAINS:
        raise ArgumentError.here(
            f"calculate_gain: expected one of leaky_relu, {', '.join(_GAINS)}, got {nonlinearity!r}"
        )
    return _GAINS[nonlinearity]


_GAINS: Final = {
    "linear": 1.0, "conv1d": 1.0, "conv2d": 1.0, "conv3d": 1.0, "conv_transpose1d": 1.0,
    "conv_transpose2d": 1.0, "conv_transpose3d": 1.0, "sigmoid": 1.0, "tanh": 5.0 / 3,
    "relu": math.sqrt(2.0), "selu": 3.0 / 4,
}  # fmt: skip


def _calculate_fan_in_and_fan_out(tensor: Any) -> tuple[int, int]:
    """Fan in and fan out: inputs per output, and outputs per input.

    PyTorch's name, as layers written for it call it.
    """
    shape = tensor.shape
    if len(shape) < 2:
        raise ShapeError.here(f"init: expected a tensor of rank 2 or more, got shape {show(shape)}")
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


@initializer
def uniform_(
    tensor: Any, a: float = 0.0, b: float = 1.0, generator: Generator | None = None
) -> Any:
    """Uniform in [a, b).

    Args:
        tensor: the tensor, which is changed in place.
        a: the lower bound.
        b: the upper bound.
        generator: where the numbers come from; by default the one that `weft.manual_seed` sets.
    """
    drawn = _source(generator).random(tensor.shape, _width(tensor))
    drawn *= b - a
    drawn += a
    return _fill(tensor, drawn)


@initializer
@arguments_of(uniform_)
def normal_(
    tensor: Any, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None
) -> Any:
    """Normal.

    Args:
        mean: the mean.
        std: the standard deviation.
    """
    drawn = _source(generator).standard_normal(tensor.shape, _width(tensor))
    drawn *= std
    drawn += mean
    return _fill(tensor, drawn)


@initializer
@arguments_of(normal_, uniform_)
def trunc_normal_(
    tensor: Any, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0,
    generator: Generator | None = None,
) -> Any:  # fmt: skip
    """Normal, truncated to [a, b] by drawing again."""
    source, size = _source(generator), math.prod(tensor.shape)
    low, high = (a - mean) / std, (b - mean) / std
    if _share(low, high) < 0.05:  # drawing again would take long
        raise WeftError.here(
            f"trunc_normal_: expected limits that hold 5% of the distribution, got [{a}, {b}] for "
            f"mean {mean} and std {std}"
        )
    drawn = source.standard_normal(size, _width(tensor))
    outside = np.flatnonzero((drawn < low) | (drawn > high))
    while outside.size:
        drawn[outside] = again = source.standard_normal(outside.size, _width(tensor))
        outside = outside[(again < low) | (again > high)]
    return _fill(tensor, (drawn * std + mean).reshape(tensor.shape))


def _share(low: float, high: float) -> float:
    return (math.erf(high / math.sqrt(2)) - math.erf(low / math.sqrt(2))) / 2


@initializer
@arguments_of(uniform_)
def constant_(tensor: Any, val: float) -> Any:
    """A constant.

    Args:
        val: the constant.
    """
    return _fill(tensor, val)


@initializer
@arguments_of(uniform_)
def ones_(tensor: Any) -> Any:
    """Ones."""
    return _fill(tensor, 1)


@initializer
@arguments_of(uniform_)
def zeros_(tensor: Any) -> Any:
    """Zeros."""
    return _fill(tensor, 0)


@initializer
@arguments_of(uniform_)
def eye_(tensor: Any) -> Any:
    """The identity matrix."""
    if len(tensor.shape) != 2:
        raise ShapeError.here(f"eye_: expected a matrix, got shape {show(tensor.shape)}")
    return _fill(tensor, np.eye(*tensor.shape))


@initializer
@arguments_of(uniform_)
def dirac_(tensor: Any, groups: int = 1) -> Any:
    """A convolution weight that passes as many channels through as it can, group by group.

    Args:
        groups: the number of groups, which divides that of the output channels.
    """
    shape = tensor.shape
    if len(shape) not in (3, 4, 5) or shape[0] % groups:
        raise ShapeError.here(
            f"dirac_: expected weights of rank 3 to 5 whose first dimension {groups} divides, got "
            f"shape {show(shape)}"
        )
    weight = np.zeros(shape)
    per_group = shape[0] // groups
    center = tuple(d // 2 for d in shape[2:])
    for group in range(groups):
        for i in range(min(per_group, shape[1])):
            weight[(group * per_group + i, i, *center)] = 1
    return _fill(tensor, weight)


@initializer
@arguments_of(uniform_)
def xavier_uniform_(tensor: Any, gain: float = 1.0, generator: Generator | None = None) -> Any:
    """Uniform, after Glorot and Bengio, "Understanding the difficulty of training" (2010).

    Args:
        gain: the factor of the bound, as of `calculate_gain`.
    """
    bound = gain * math.sqrt(6.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return uniform_(tensor, -bound, bound, generator)


@initializer
@arguments_of(uniform_)
def xavier_normal_(tensor: Any, gain: float = 1.0, generator: Generator | None = None) -> Any:
    """Normal, after Glorot and Bengio, "Understanding the difficulty of training" (2010).

    Args:
        gain: the factor of the standard deviation, as of `calculate_gain`.
    """
    return normal_(
        tensor, 0.0, gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor))), generator
    )


def _fan(tensor: Any, mode: str) -> int:
    names = ("fan_in", "fan_out")
    if mode not in names:
        raise ArgumentError.here(f"kaiming: expected mode fan_in or fan_out, got {mode!r}")
    return _calculate_fan_in_and_fan_out(tensor)[names.index(mode)]


def _is_empty(tensor: Any) -> bool:
    """Whether the tensor is empty, with a warning."""
    if 0 not in tensor.shape:
        return False
    warn("init: a tensor without elements stays as it is")
    return True


@initializer
@arguments_of(uniform_)
def kaiming_uniform_(
    tensor: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Any:  # fmt: skip
    """Uniform, after He et al., "Delving deep into rectifiers" (2015).

    Args:
        a: the slope of `leaky_relu` below 0.
        mode: `fan_in` keeps the scale of activations, `fan_out` that of gradients.
        nonlinearity: what follows the layer, as for `calculate_gain`.
    """
    if _is_empty(tensor):
        return tensor
    std = calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode))
    return uniform_(tensor, -math.sqrt(3.0) * std, math.sqrt(3.0) * std, generator)


@initializer
@arguments_of(kaiming_uniform_)
def kaiming_normal_(
    tensor: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Any:  # fmt: skip
    """Normal, after He et al., "Delving deep into rectifiers" (2015)."""
    if _is_empty(tensor):
        return tensor
    std = calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode))
    return normal_(tensor, 0.0, std, generator)


@initializer
@arguments_of(uniform_)
def orthogonal_(tensor: Any, gain: float = 1, generator: Generator | None = None) -> Any:
    """Orthogonal rows or columns, after Saxe et al., "Exact solutions to the dynamics of learning"
    (2013).

    The tensor counts as a matrix of its first dimension by all others.

    Args:
        gain: the factor of the matrix.
    """
    shape = tensor.shape
    if len(shape) < 2:
        raise ShapeError.here(
            f"orthogonal_: expected a tensor of rank 2 or more, got shape {show(shape)}"
        )
    rows, columns = shape[0], math.prod(shape[1:])
    drawn = _source(generator).standard_normal((max(rows, columns), min(rows, columns)))
    q, r = np.linalg.qr(drawn)
    q *= np.sign(np.diag(r))  # else the distribution would not be uniform
    return _fill(tensor, gain * (q if rows >= columns else q.T).reshape(shape))


@initializer
@arguments_of(uniform_)
def sparse_(
    tensor: Any, sparsity: float, std: float = 0.01, generator: Generator | None = None
) -> Any:
    """Normal, with a fraction of each column zero.

    Args:
        sparsity: the fraction.
        std: the standard deviation of the others.
    """
    shape = tensor.shape
    if len(shape) != 2:
        raise ShapeError.here(f"sparse_: expected a matrix, got shape {show(shape)}")
    source, rows = _source(generator), shape[0]
    drawn = source.standard_normal(shape) * std
    for column in range(shape[1]):
        drawn[source.permutation(rows)[: math.ceil(sparsity * rows)], column] = 0
    return _fill(tensor, drawn)


def _by_old_name(function: Callable[..., Any]) -> Callable[..., Any]:
    """The deprecated alias of a function, without the `_` at the end."""
    name = function.__name__

    @named(name[:-1], f"`{name}` by its old name, which warns.")
    def old(*args: Any, **kwargs: Any) -> Any:
        text = f"nn.init.{name[:-1]} is deprecated; use nn.init.{name}"
        warn(text, FutureWarning)
        return function(*args, **kwargs)

    return refusing(old)


constant = _by_old_name(constant_)
dirac = _by_old_name(dirac_)
eye = _by_old_name(eye_)
kaiming_normal = _by_old_name(kaiming_normal_)
kaiming_uniform = _by_old_name(kaiming_uniform_)
normal = _by_old_name(normal_)
orthogonal = _by_old_name(orthogonal_)
sparse = _by_old_name(sparse_)
uniform = _by_old_name(uniform_)
xavier_normal = _by_old_name(xavier_normal_)
xavier_uniform = _by_old_name(xavier_uniform_)
