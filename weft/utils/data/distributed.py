"""`DistributedSampler` where PyTorch has it: `torch.utils.data.distributed`."""

from __future__ import annotations

from weft.utils.data.sampler import DistributedSampler

__all__ = ["DistributedSampler"]
