"""Benchmarks of devices and clusters, beside TensorFlow with its own servers."""
