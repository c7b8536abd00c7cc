"""The machinery of Keras's layers and models."""
