"""PyTorch's `torch.utils.data`: datasets, samplers, `DataLoader`."""

from weft import exports as _exports
from weft.utils.data import distributed as distributed
from weft.utils.data.collate import *
from weft.utils.data.dataset import *
from weft.utils.data.fetch import *
from weft.utils.data.loader import DataLoader as DataLoader
from weft.utils.data.sampler import *

_exports.gather(globals(), "distributed")
