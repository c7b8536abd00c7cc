"""Modules that train on several ranks."""

from weft import exports as _exports
from weft.nn.parallel.data_parallel import DistributedDataParallel as DistributedDataParallel
from weft.nn.parallel.one_device import DataParallel as DataParallel

_exports.gather(globals())
