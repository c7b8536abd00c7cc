"""`tf.keras.preprocessing`: sequences of one length, and numbers for words."""

from weft.tf1.keras.preprocessing import sequence, text

__all__ = ["sequence", "text"]
