"""Modules that train on several ranks."""

from weft.nn.parallel.data_parallel import DistributedDataParallel

__all__ = ["DistributedDataParallel"]
