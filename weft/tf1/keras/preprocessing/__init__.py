"""`tf.keras.preprocessing`: padded sequences, a tokenizer, changed images."""

from weft.tf1.keras.preprocessing import image, sequence, text

__all__ = ["image", "sequence", "text"]
