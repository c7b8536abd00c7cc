"""Keras 3's own tests on its torch backend, on PyTorch and on Weft."""
