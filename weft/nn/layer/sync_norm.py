"""Batch normalization with statistics over all ranks' examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.collectives.process_group import member
from weft.eager.tensor.dispatch import record, recorded, wrap
from weft.eager.tensor.generator import in_branch
from weft.errors import ArgumentError
from weft.nn.functional.normalization import move_statistics
from weft.nn.layer.normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d
from weft.nn.module.module import Module
from weft.ops.declaration import REGISTRY
from weft.ops.declaration.fact import Autocast
from weft.ops.layer import channel_normalization as norm
from weft.transport import session
from weft.transport.group import Group


class SyncBatchNorm(BatchNorm2d):
    """`BatchNorm` for any rank from 2 on, with statistics over all processes in training.

    Processes may have different numbers of examples. Gradients are those of the sum of all
    processes' losses. Without a process group, and in evaluation, it is plain batch normalization.

    Args:
        process_group: the ranks; all if left out.

    Source: Peng et al., "MegDet" (2018), section 3.3.
    """

    ranks = (2, 3, 4, 5)

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1,
        affine: bool = True, track_running_stats: bool = True, process_group: Group | None = None,
        device: Any = None, dtype: Any = None, bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias
        )
        self.process_group = process_group

    def forward(self, input: Any) -> Any:
        """The input's shape; running statistics are updated in training."""
        by_batch = self.training or self.running_mean is None
        if not by_batch or session.current() is None:
            return super().forward(input)
        group = member(self.process_group, "SyncBatchNorm")
        if in_branch():
            raise ArgumentError.here(
                "SyncBatchNorm: expected a DistributedDataParallel without shards, whose parts are "
                "computed one by one, so that no statistics of the whole batch are there; use "
                "BatchNorm, which normalizes each part by itself"
            )
        self._check_input_dim(input)
        mean, count = _over_ranks(_totals(input), group)
        mean = mean / count
        (squares,) = _over_ranks([_squares(input, mean)], group)
        var = squares / count
        if self.training and self.track_running_stats:
            buffers = (self.running_mean, self.running_var, self.num_batches_tracked)
            unbiased = (squares / (count - 1)).detach()
            move_statistics(buffers, (mean.detach(), unbiased), self.momentum)
        return _normalized(input, mean, var, self.weight, self.bias, eps=float(self.eps))

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Group | None = None) -> Module:
        """A module with all its batch normalizations replaced; the tensors are shared."""
        if isinstance(module, BatchNorm1d | BatchNorm2d | BatchNorm3d):
            synchronized = cls(
                module.num_features, module.eps, module.momentum, module.affine,
                module.track_running_stats, process_group,
            )  # fmt: skip
            synchronized.weight, synchronized.bias = module.weight, module.bias
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                synchronized.register_buffer(name, getattr(module, name))
            return synchronized.train(module.training)
        for name, child in module.named_children():
            setattr(module, name, cls.convert_sync_batchnorm(child, process_group))
        return module


def _over_ranks(xs: Sequence[Any], group: Group) -> list[Any]:
    """Sums over ranks, with gradients."""
    options = {"reduction": "sum", "group": group.number}
    return [wrap(x) for x in record(REGISTRY["all_reduce"], [x.lazy for x in xs], options)]


_totals = recorded(autocast=Autocast.FLOAT32)(norm.channel_totals)
_squares = recorded(autocast=Autocast.FLOAT32)(norm.channel_squares)
_normalized = recorded(norm.channels_normalized)
