"""Horovod for eager tensors: programs written for `horovod.torch` change their import.

>>> import weft as wf
>>> import weft.horovod.torch as hvd
>>> hvd.init()
>>> model = wf.nn.Linear(2, 1)
>>> optimizer = wf.optim.SGD(model.parameters(), lr=0.1 * hvd.size())
>>> optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
>>> hvd.broadcast_parameters(model.state_dict(), root_rank=0)
>>> hvd.broadcast_optimizer_state(optimizer, root_rank=0)
>>> model(wf.ones(4, 2)).mean().backward()
>>> optimizer.step()
>>> hvd.shutdown()
"""

from __future__ import annotations

from weft.horovod import basics, process_set, timeline
from weft.horovod.basics import *
from weft.horovod.basics import Max, Min, Product, is_homogeneous, join
from weft.horovod.process_set import *
from weft.horovod.reduction import Adasum
from weft.horovod.timeline import *
from weft.horovod.torch import collective, elastic, state
from weft.horovod.torch.collective import *
from weft.horovod.torch.compression import Compression
from weft.horovod.torch.norm import SyncBatchNorm
from weft.horovod.torch.optimizer import DistributedOptimizer
from weft.horovod.torch.state import *

__all__ = [
    "Adasum", "Compression", "DistributedOptimizer", "Max", "Min", "Product", "SyncBatchNorm",
    "elastic", "is_homogeneous", "join",
]  # fmt: skip
__all__ += basics.__all__
__all__ += collective.__all__
__all__ += process_set.__all__
__all__ += state.__all__
__all__ += timeline.__all__
