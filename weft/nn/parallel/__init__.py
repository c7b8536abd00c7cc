"""Modules that train on several ranks."""

from weft.nn.parallel.data_parallel import DistributedDataParallel
from weft.nn.parallel.one_device import DataParallel

__all__ = ["DataParallel", "DistributedDataParallel"]
