"""What PyTorch programs ask and set of its libraries, none of which Weft uses.

>>> import weft as wf
>>> wf.backends.cudnn.benchmark = True  # no effect
>>> wf.backends.mps.is_available()
False
"""

from __future__ import annotations

from weft.backends import cuda, cudnn, mps

__all__ = ["cuda", "cudnn", "mps"]
