"""Data to train on: MNIST from its files, and real digits that come with the package."""

from weft.datasets.digits import load_digits
from weft.datasets.mnist import Dataset, Datasets, get_mnist
from weft.formats.idx import read_idx

__all__ = ["Dataset", "Datasets", "get_mnist", "load_digits", "read_idx"]
