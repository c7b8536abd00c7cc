"""Control flow, gradients and Python functions in a graph."""
