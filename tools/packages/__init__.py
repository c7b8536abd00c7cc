"""Packages that use PyTorch, unchanged over Weft: the same scripts under both frameworks."""
