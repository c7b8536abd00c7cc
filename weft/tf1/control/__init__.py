"""Order, gradients and Python inside a graph."""
