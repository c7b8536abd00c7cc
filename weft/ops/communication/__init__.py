"""What ranks do together, as operations: part of the graph, with gradients."""
