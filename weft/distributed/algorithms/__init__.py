"""Hooks that reduce gradients, and `Join` for ranks with different numbers of batches."""

from __future__ import annotations

from weft import exports as _exports
from weft.distributed.algorithms import default_hooks as default_hooks
from weft.distributed.algorithms.join import *

_exports.gather(globals(), "default_hooks")
