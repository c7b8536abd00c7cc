"""Graph to graph before compilation: reverse mode, the interpreter, the gradient checker."""
