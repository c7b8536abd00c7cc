"""PyTorch's functions and methods, by field."""
