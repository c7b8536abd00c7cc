"""Options of `FullyShardedDataParallel`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from weft.ir.dtype import DType

__all__ = [
    "BackwardPrefetch", "CPUOffload", "FullOptimStateDictConfig", "FullStateDictConfig",
    "LocalOptimStateDictConfig", "LocalStateDictConfig", "MixedPrecision", "OptimStateDictConfig",
    "ShardedOptimStateDictConfig", "ShardedStateDictConfig", "ShardingStrategy", "StateDictConfig",
    "StateDictType",
]  # fmt: skip


class ShardingStrategy(Enum):
    """What ranks share: all, all but gathered parameters, nothing; `HYBRID` within a host."""

    FULL_SHARD = auto()
    SHARD_GRAD_OP = auto()
    NO_SHARD = auto()
    HYBRID_SHARD = auto()
    _HYBRID_SHARD_ZERO2 = auto()


class BackwardPrefetch(Enum):
    """When the next unit is gathered in backward passes; Weft learns the order."""

    BACKWARD_PRE = auto()
    BACKWARD_POST = auto()


class StateDictType(Enum):
    """Whether `state_dict()` has whole tensors, or a rank's shards."""

    FULL_STATE_DICT = auto()
    LOCAL_STATE_DICT = auto()
    SHARDED_STATE_DICT = auto()


@dataclass
class MixedPrecision:
    """Element types; see `MixedPrecisionPolicy`.

    Args:
        param_dtype: of gathered parameters and the module's arithmetic.
        reduce_dtype: of gradients while they are reduced.
        buffer_dtype: has no effect: buffers keep their type.
        keep_low_precision_grads, cast_root_forward_inputs: have no effect.
        cast_forward_inputs: whether floating arguments are converted.
    """

    param_dtype: DType | None = None
    reduce_dtype: DType | None = None
    buffer_dtype: DType | None = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = True
    cast_root_forward_inputs: bool = True


@dataclass
class CPUOffload:
    """Where shards are stored: in the host's memory in any case.

    Args:
        offload_params: has no effect.
    """

    offload_params: bool = False


@dataclass
class StateDictConfig:
    """How states are given.

    Args:
        offload_to_cpu: has no effect.
    """

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """Whole tensors.

    Args:
        offload_to_cpu: has no effect.
        rank0_only: whether on the first rank alone.
    """

    rank0_only: bool = False


OptimStateDictConfig = StateDictConfig
FullOptimStateDictConfig = FullStateDictConfig
ShardedStateDictConfig = LocalStateDictConfig = StateDictConfig
ShardedOptimStateDictConfig = LocalOptimStateDictConfig = StateDictConfig
