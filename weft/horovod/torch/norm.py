"""`SyncBatchNorm` with Horovod's arguments."""

from __future__ import annotations

from weft.horovod.process_set import ProcessSet, global_process_set
from weft.nn.layer.sync_norm import SyncBatchNorm as _SyncBatchNorm


class SyncBatchNorm(_SyncBatchNorm):
    """`weft.nn.SyncBatchNorm` over the ranks of a process set.

    Args:
        num_features: the number of channels.
        eps: added to the variance.
        momentum: the weight of a new batch in running statistics; `None` for a plain mean.
        affine: whether there are a weight and a bias.
        track_running_stats: whether running statistics are kept.
        process_set: the ranks whose batches are normalized together.
    """

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1,
        affine: bool = True, track_running_stats: bool = True,
        process_set: ProcessSet = global_process_set,
    ) -> None:  # fmt: skip
        group = None if process_set is global_process_set else process_set.group
        super().__init__(num_features, eps, momentum, affine, track_running_stats, group)
