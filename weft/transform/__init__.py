"""Graph-to-graph transformations: gradients, tangents, batching, the interpreter, checks."""
