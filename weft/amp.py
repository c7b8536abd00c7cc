"""Mixed precision under PyTorch's names: `wf.amp.autocast`, `wf.amp.GradScaler`.

>>> import weft as wf
>>> with wf.amp.autocast("cpu", dtype=wf.bfloat16):
...     (wf.ones(2, 3) @ wf.ones(3, 2)).dtype
weft.bfloat16
"""

from __future__ import annotations

from weft import exports as _exports
from weft.eager.functions.api import GradScaler as GradScaler
from weft.eager.functions.api import autocast as autocast

_exports.gather(globals())
