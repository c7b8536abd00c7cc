"""Signals, under PyTorch's names: `weft.signal.windows`."""

from weft.signal import windows as windows
