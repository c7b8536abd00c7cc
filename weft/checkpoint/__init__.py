"""Checkpoints of a run: folders of arrays, written atomically, verified when read."""

from weft.checkpoint.checkpointer import Checkpointer
from weft.checkpoint.random_state import RandomState
from weft.checkpoint.restoring import Restored
from weft.checkpoint.slices import PerRank, Slice

__all__ = ["Checkpointer", "PerRank", "RandomState", "Restored", "Slice"]
