"""Modules that train on several ranks at once."""

from weft.nn.parallel.data_parallel import DistributedDataParallel

__all__ = ["DistributedDataParallel"]
