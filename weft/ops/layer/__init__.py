"""Inner operations of layers: softmax, normalization, losses."""
