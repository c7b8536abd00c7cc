"""Tensors from and to other data: arrays, other libraries, text, files."""
