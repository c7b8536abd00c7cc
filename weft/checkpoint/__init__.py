"""Checkpoints of a run: folders of arrays, written atomically, verified when read."""

from weft import exports as _exports
from weft.checkpoint.checkpointer import Checkpointer as Checkpointer
from weft.checkpoint.random_state import RandomState as RandomState
from weft.checkpoint.restoring import Restored as Restored
from weft.checkpoint.slices import *

_exports.gather(globals())
