"""`tf.keras.datasets`, read from local files; see `weft.datasets`.

Each has `load_data()`, which returns (x, y) for training and (x, y) for testing.
"""

from weft.tf1.keras.datasets import cifar10, cifar100, fashion_mnist, imdb, mnist, reuters

__all__ = ["cifar10", "cifar100", "fashion_mnist", "imdb", "mnist", "reuters"]
