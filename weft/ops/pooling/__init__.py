"""Pooling: windows of images reduced to one element."""
