"""`tf.keras.datasets`, from files that the user has; see `weft.datasets`.

Each has `load_data()`, which gives (x, y) to train on and (x, y) to test on.
"""

from weft.tf1.keras.datasets import cifar10, cifar100, fashion_mnist, mnist

__all__ = ["cifar10", "cifar100", "fashion_mnist", "mnist"]
