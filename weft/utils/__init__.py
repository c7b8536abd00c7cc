"""Utilities with the names of `torch.utils`."""

from weft.utils import checkpoint, data, dlpack, tensorboard

__all__ = ["checkpoint", "data", "dlpack", "tensorboard"]
