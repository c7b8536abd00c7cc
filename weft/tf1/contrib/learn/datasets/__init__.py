"""`tf.contrib.learn.datasets`."""

from __future__ import annotations

from typing import Any

from weft.tf1.contrib.learn.datasets import mnist as mnist

__all__ = ["load_dataset", "mnist"]


def load_dataset(name: str, size: str = "small", test_with_fake_data: bool = False) -> Any:
    """A data set by its name: `mnist`.

    Raises:
        ValueError: there is no such data set here.
    """
    del size
    if name != "mnist" or test_with_fake_data:
        raise ValueError(f"load_dataset: expected 'mnist', got {name!r}")
    return mnist.load_mnist()
