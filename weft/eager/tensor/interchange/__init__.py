"""Tensors from data and as data: arrays, other libraries, text, files."""
