"""`import weft.as_torch`, a program's first line: Weft answers imports of PyTorch and others.

From then on `torch`, `lightning`, `pytorch_lightning`, `torchmetrics` and `horovod` are Weft, with
their submodules, in this process and in those that `multiprocessing` starts; installed copies are
not loaded. Other packages, such as torchvision, find Weft when they import `torch`. What Weft lacks
raises where it is used. `weft run SCRIPT` does the same for a program that is not changed.

>>> import weft.as_torch
>>> import torch.nn.modules.container
>>> len(torch.nn.modules.container.Sequential(torch.nn.Linear(2, 1)))
1
"""

from __future__ import annotations

from weft.mirror import table
from weft.mirror.finder import install

__all__ = ["install"]

install(table.TORCH)
