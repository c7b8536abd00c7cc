"""Initializers: functions from shape and element type to a variable's initial value."""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft import ops
from weft.documentation import named
from weft.errors import DTypeError, GraphError, ShapeError
from weft.ops.boundary.routine import routine
from weft.ops.random import scaling
from weft.tf1.creation import eye, ones, zeros
from weft.tf1.framework import dtypes
from weft.tf1.framework.convert import as_array, constant
from weft.tf1.framework.dtypes import DType, as_dtype
from weft.tf1.framework.graph import emit, fail
from weft.tf1.framework.tensor import Tensor
from weft.tf1.indexing.slicing import slice as slice_of
from weft.tf1.random import distribution as random_ops
from weft.tf1.variable.slice_info import PartitionInfo

__all__ = [
    "constant_initializer", "glorot_normal_initializer", "glorot_uniform_initializer",
    "ones_initializer", "orthogonal_initializer", "random_normal_initializer",
    "random_uniform_initializer", "truncated_normal_initializer",
    "uniform_unit_scaling_initializer", "variance_scaling_initializer", "zeros_initializer",
]  # fmt: skip


def call(
    initializer: Any, shape: Sequence[int], dtype: DType | None,
    partition_info: PartitionInfo | None = None,
) -> Any:  # fmt: skip
    """Call an initializer, whatever its signature."""
    if isinstance(initializer, Initializer):
        return initializer(shape, dtype, partition_info)
    try:
        parameters = inspect.signature(initializer).parameters
    except (TypeError, ValueError):
        return initializer(shape, dtype)
    options: dict[str, Any] = {"dtype": dtype}
    if partition_info is not None:
        options["partition_info"] = partition_info
    if not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        options = {name: value for name, value in options.items() if name in parameters}
    return initializer(shape, **options) if parameters else initializer()


class Initializer:
    """Base class: `initializer(shape, dtype=None)` returns a tensor."""

    dtype: DType = dtypes.float32

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """A tensor of `shape`, of the initializer's own type by default; or a part of a whole."""
        kind = self.dtype if dtype is None else as_dtype(dtype)
        if partition_info is None:
            return self._fill(shape, kind)
        return self._part(shape, kind, partition_info)

    def _fill(self, shape: Any, kind: DType) -> Tensor:
        raise NotImplementedError

    def _part(self, shape: Any, kind: DType, info: PartitionInfo) -> Tensor:
        """A part of a whole variable."""
        del info
        return self._fill(shape, kind)

    def get_config(self) -> dict[str, Any]:
        """The constructor's arguments."""
        return {k: v.name if isinstance(v, DType) else v for k, v in vars(self).items()}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Initializer:
        """An initializer from `get_config`."""
        return cls(**{k: v for k, v in config.items() if k in inspect.signature(cls).parameters})


class Zeros(Initializer):
    """Zeros."""

    def __init__(self, dtype: Any = dtypes.float32) -> None:
        self.dtype = as_dtype(dtype)

    def _fill(self, shape: Any, kind: DType) -> Tensor:
        return zeros(shape, kind)


class Ones(Initializer):
    """Ones."""

    def __init__(self, dtype: Any = dtypes.float32) -> None:
        self.dtype = as_dtype(dtype)

    def _fill(self, shape: Any, kind: DType) -> Tensor:
        return ones(shape, kind)


class Constant(Initializer):
    """A constant, or the values of a list or array."""

    def __init__(
        self, value: Any = 0, dtype: Any = dtypes.float32, verify_shape: bool = False
    ) -> None:
        self.value = value
        self.dtype = as_dtype(dtype)
        self.verify_shape = verify_shape

    def _fill(self, shape: Any, kind: DType) -> Tensor:
        check = self.verify_shape
        if np.ndim(self.value) == 0 and not check:
            number = as_array(self.value, kind)
            dims = tuple(int(d) for d in shape)
            return emit(
                "Const", (), ops.full, shape=dims, value=number, dtype=kind.ir, name="Const"
            )
        return constant(self.value, kind, shape, verify_shape=bool(check))


class RandomUniform(Initializer):
    """Uniform in [minval, maxval)."""

    def __init__(
        self, minval: Any = 0, maxval: Any = None, seed: int | None = None,
        dtype: Any = dtypes.float32,
    ) -> None:  # fmt: skip
        self.minval = minval
        self.maxval = maxval
        self.seed = seed
        self.dtype = as_dtype(dtype)

    def _fill(self, shape: Any, kind: DType) -> Tensor:
        return random_ops.random_uniform(shape, self.minval, self.maxval, kind, seed=self.seed)


class RandomNormal(Initializer):
    """Normal."""

    def __init__(
        self, mean: float = 0.0, stddev: float = 1.0, seed: int | None = None,
        dtype: Any = dtypes.float32,
    ) -> None:  # fmt: skip
        self.mean = mean
        self.stddev = stddev
        self.seed = seed
        self.dtype = _floating(dtype)

    def _fill(self, shape: Any, kind: DType) -> Tensor:
        return random_ops.random_normal(shape, self.mean, self.stddev, kind, seed=self.seed)


class TruncatedNormal(RandomNormal):
    """Truncated normal, within two standard deviations."""

    def _fill(self, shape: Any, kind: DType) -> Tensor:
        return random_ops.truncated_normal(shape, self.mean, self.stddev, kind, seed=self.seed)


class VarianceScaling(Initializer):
    """Variance scaling: keeps the variance of activations through a layer.

    Args:
        scale: the variance times the fan.
        mode: the fan: `fan_in`, `fan_out` or `fan_avg`.
        distribution: `truncated_normal` (or `normal`), `untruncated_normal` or `uniform`.
    """

    def __init__(
        self, scale: float = 1.0, mode: str = "fan_in", distribution: str = "truncated_normal",
        seed: int | None = None, dtype: Any = dtypes.float32,
    ) -> None:  # fmt: skip
        if scale <= 0:
            raise fail(GraphError, f"variance_scaling: expected scale > 0, got {scale}")
        if mode not in ("fan_in", "fan_out", "fan_avg"):
            raise fail(GraphError, f"variance_scaling: unknown mode {mode!r}")
        if distribution not in ("normal", "uniform", "truncated_normal", "untruncated_normal"):
            raise fail(GraphError, f"variance_scaling: unknown distribution {distribution!r}")
        self.scale = scale
        self.mode = mode
        self.distribution = distribution
        self.seed = seed
        self.dtype = _floating(dtype)

    def _fill(self, shape: Any, kind: DType) -> Tensor:
        return self._scaled(shape, shape, kind)

    def _scaled(self, shape: Any, whole: Any, kind: DType) -> Tensor:
        kept = {"untruncated_normal": "normal", "normal": "truncated_normal"}
        law = kept.get(self.distribution, self.distribution)
        ins, outs = (max(1.0, fan) for fan in fans([int(d) for d in whole]))
        spread = float(scaling.deviation(self.scale, self.mode, law, ins, outs))
        if law == "uniform":
            return random_ops.random_uniform(shape, -spread, spread, kind, seed=self.seed)
        draw = random_ops.random_normal if law == "normal" else random_ops.truncated_normal
        return draw(shape, 0.0, spread, kind, seed=self.seed)

    def _part(self, shape: Any, kind: DType, info: PartitionInfo) -> Tensor:
        return self._scaled(shape, info.full_shape, kind)


def fans(shape: Sequence[int]) -> tuple[float, float]:
    """Fan in and fan out: weights are (spatial..., in, out)."""
    if len(shape) == 0:
        return 1.0, 1.0
    if len(shape) == 1:
        return float(shape[0]), float(shape[0])
    field = math.prod(shape[:-2])
    return float(shape[-2] * field), float(shape[-1] * field)


class GlorotUniform(VarianceScaling):
    """Glorot and Bengio (2010): uniform, variance 2 / (fan_in + fan_out)."""

    def __init__(self, seed: int | None = None, dtype: Any = dtypes.float32) -> None:
        super().__init__(1.0, "fan_avg", "uniform", seed, dtype)


class GlorotNormal(VarianceScaling):
    """Glorot and Bengio (2010): truncated normal, variance 2 / (fan_in + fan_out)."""

    def __init__(self, seed: int | None = None, dtype: Any = dtypes.float32) -> None:
        super().__init__(1.0, "fan_avg", "truncated_normal", seed, dtype)


class UniformUnitScaling(Initializer):
    """Uniform, variance 1 / fan_in times `factor` squared."""

    def __init__(
        self, factor: float = 1.0, seed: int | None = None, dtype: Any = dtypes.float32
    ) -> None:
        self.factor = factor
        self.seed = seed
        self.dtype = _floating(dtype)

    def _fill(self, shape: Any, kind: DType) -> Tensor:
        return self._scaled(shape, shape, kind)

    def _part(self, shape: Any, kind: DType, info: PartitionInfo) -> Tensor:
        return self._scaled(shape, info.full_shape, kind)

    def _scaled(self, shape: Any, whole: Any, kind: DType) -> Tensor:
        inputs = math.prod([int(d) for d in whole][:-1]) or 1
        limit = math.sqrt(3.0 / inputs) * self.factor
        return random_ops.random_uniform(shape, -limit, limit, kind, seed=self.seed)


class Orthogonal(Initializer):
    """Orthogonal rows or columns times `gain` (Saxe et al., 2013), from a QR decomposition."""

    def __init__(
        self, gain: float = 1.0, seed: int | None = None, dtype: Any = dtypes.float32
    ) -> None:
        self.gain = gain
        self.seed = seed
        self.dtype = _floating(dtype)

    def _fill(self, shape: Any, kind: DType) -> Tensor:
        dims = [int(d) for d in shape]
        if len(dims) < 2:
            raise fail(ShapeError, f"orthogonal: expected a rank of 2 or more, got shape {dims}")
        rows, columns = math.prod(dims[:-1]), dims[-1]
        flat = (max(rows, columns), min(rows, columns))
        normal = random_ops.random_normal(flat, dtype=kind, seed=self.seed)

        def build(x: Any) -> Any:
            found = ops.host_call(x, function=_orthonormal, dtypes=(kind.ir,), shapes=(flat,))
            q = ops.transpose(found, perm=(1, 0)) if rows < columns else found
            return ops.reshape(q, shape=tuple(dims)) * self.gain

        return emit("Mul", [normal], build, name="mul")


@routine
def _orthonormal(x: Any) -> Any:
    q, r = np.linalg.qr(x.astype(np.promote_types(x.dtype, np.float32)))
    return (q * np.where(np.diag(r) < 0, -1, 1)).astype(x.dtype)


class Identity(Initializer):
    """The identity matrix times `gain`."""

    def __init__(self, gain: float = 1.0, dtype: Any = dtypes.float32) -> None:
        self.gain = gain
        self.dtype = _floating(dtype)

    def _fill(self, shape: Any, kind: DType) -> Tensor:
        if len(shape) != 2:
            raise fail(ShapeError, f"identity: expected a matrix, got shape {list(shape)}")
        found = eye(int(shape[0]), int(shape[1]), dtype=kind)
        return found if self.gain == 1.0 else found * self.gain

    def _part(self, shape: Any, kind: DType, info: PartitionInfo) -> Tensor:
        return slice_of(self._fill(info.full_shape, kind), info.var_offset, shape)


def _floating(dtype: Any) -> DType:
    kind = as_dtype(dtype)
    if not kind.is_floating:
        raise fail(DTypeError, f"initializer: expected a floating type, got {kind.name}")
    return kind


def _scaling(title: str, scale: float, distribution: str, doc: str):
    @named(title, doc)
    def initializer(seed: int | None = None) -> VarianceScaling:
        return VarianceScaling(scale, "fan_in", distribution, seed)

    return initializer


lecun_normal = _scaling(
    "lecun_normal", 1.0, "truncated_normal", "Truncated normal, variance 1 / fan_in."
)
lecun_uniform = _scaling("lecun_uniform", 1.0, "uniform", "Uniform, variance 1 / fan_in.")
he_normal = _scaling(
    "he_normal", 2.0, "truncated_normal",
    "He et al. (2015): truncated normal, variance 2 / fan_in.",
)  # fmt: skip
he_uniform = _scaling(
    "he_uniform", 2.0, "uniform", "He et al. (2015): uniform, variance 2 / fan_in."
)


def xavier_initializer(
    uniform: bool = True, seed: int | None = None, dtype: Any = dtypes.float32
) -> Initializer:
    """`tf.contrib.layers.xavier_initializer`: Glorot's."""
    return GlorotUniform(seed, dtype) if uniform else GlorotNormal(seed, dtype)


zeros_initializer = Zeros
ones_initializer = Ones
constant_initializer = Constant
random_uniform_initializer = RandomUniform
random_normal_initializer = RandomNormal
truncated_normal_initializer = TruncatedNormal
uniform_unit_scaling_initializer = UniformUnitScaling
variance_scaling_initializer = VarianceScaling
orthogonal_initializer = Orthogonal
glorot_uniform_initializer = GlorotUniform
glorot_normal_initializer = GlorotNormal
identity_initializer = Identity
