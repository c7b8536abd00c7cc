"""`Embedding`: a table lookup."""

from __future__ import annotations

from typing import Any

import weft.tf1 as tf
from weft.tf1.keras.layers.weighted import WeightedLayer


class Embedding(WeightedLayer):
    """(batch, steps) integers to (batch, steps, output_dim).

    Args:
        input_dim: rows of the table.
        output_dim: features of a row.
        mask_zero: whether index 0 is masked.
        input_length: the number of steps, if it never varies.
    """

    weight_options = WeightedLayer.of("embeddings")

    def __init__(
        self, input_dim: int, output_dim: int, mask_zero: bool = False,
        input_length: int | None = None, **options: Any,
    ) -> None:  # fmt: skip
        if "input_shape" not in options and "batch_input_shape" not in options:
            options["input_shape"] = (input_length,)
        super().__init__(options)
        self.input_dim, self.output_dim = int(input_dim), int(output_dim)
        self.mask_zero, self.input_length = mask_zero, input_length
        self.supports_masking = mask_zero

    def build(self, input_shape: Any) -> None:
        """Create the table."""
        self.embeddings = self.weight("embeddings", (self.input_dim, self.output_dim))
        self.built = True

    def call(self, inputs: Any) -> Any:
        """The outputs."""
        numbers = inputs if inputs.dtype.is_integer else tf.cast(inputs, tf.int32)
        return tf.nn.embedding_lookup(self.embeddings, numbers)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """The mask of steps."""
        return tf.not_equal(inputs, 0) if self.mask_zero else None
