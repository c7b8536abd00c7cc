"""Graphs, tensors, shapes and element types, as TensorFlow has them."""
