"""Data sets: images and text read from a local folder, tables, and bundled digits."""

from weft.datasets.digits import load_digits
from weft.datasets.mnist import Dataset, Datasets, get_mnist
from weft.datasets.table import read_csv
from weft.datasets.text import BytePairTokenizer, CharTokenizer, TextDataset
from weft.datasets.vision import CIFAR10, CIFAR100, MNIST, FashionMNIST, ImageFolder, Images
from weft.formats.idx import read_idx

__all__ = [
    "CIFAR10", "CIFAR100", "MNIST", "BytePairTokenizer", "CharTokenizer", "Dataset", "Datasets",
    "FashionMNIST", "ImageFolder", "Images", "TextDataset", "get_mnist", "load_digits", "read_csv",
    "read_idx",
]  # fmt: skip
