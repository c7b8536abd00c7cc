"""Tensors made from data, shapes and numbers."""
