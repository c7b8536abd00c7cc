"""Runs networks written for PyTorch under PyTorch and under Weft, and compares the results."""
