"""Checkpoints of all ranks: the names of PyTorch's `torch.distributed.checkpoint`.

See docs/CHECKPOINTS.md.
"""

from __future__ import annotations

from weft import exports as _exports
from weft.distributed.checkpoint import format_utils as format_utils
from weft.distributed.checkpoint import state_dict as state_dict
from weft.distributed.checkpoint import stateful as stateful
from weft.distributed.checkpoint.api import CheckpointException as CheckpointException
from weft.distributed.checkpoint.default_planner import *
from weft.distributed.checkpoint.filesystem import *
from weft.distributed.checkpoint.metadata import *
from weft.distributed.checkpoint.state_dict_loader import *
from weft.distributed.checkpoint.state_dict_saver import *
from weft.distributed.checkpoint.stateful import Stateful as Stateful

_exports.gather(globals(), "format_utils", "state_dict", "stateful")
