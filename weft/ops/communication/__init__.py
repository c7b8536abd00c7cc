"""Communication between ranks, as operations of the graph, with gradients."""
