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

from weft import exports as _exports
from weft.horovod.basics import *
from weft.horovod.basics import Max as Max
from weft.horovod.basics import Min as Min
from weft.horovod.basics import Product as Product
from weft.horovod.basics import is_homogeneous as is_homogeneous
from weft.horovod.basics import join as join
from weft.horovod.process_set import *
from weft.horovod.reduction import Adasum as Adasum
from weft.horovod.timeline import *
from weft.horovod.torch import elastic as elastic
from weft.horovod.torch.collective import *
from weft.horovod.torch.compression import Compression as Compression
from weft.horovod.torch.norm import SyncBatchNorm as SyncBatchNorm
from weft.horovod.torch.optimizer import DistributedOptimizer as DistributedOptimizer
from weft.horovod.torch.state import *

_exports.gather(globals(), "elastic")
