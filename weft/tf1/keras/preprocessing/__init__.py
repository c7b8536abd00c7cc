"""`tf.keras.preprocessing`: padded sequences, and a tokenizer."""

from weft.tf1.keras.preprocessing import sequence, text

__all__ = ["sequence", "text"]
