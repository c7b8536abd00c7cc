"""Graph to graph before compilation: gradients, tangents, batching, the interpreter, checks."""
