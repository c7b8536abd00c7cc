"""Graphs, tensors, shapes and element types."""
