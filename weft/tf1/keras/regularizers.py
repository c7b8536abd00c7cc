"""`tf.keras.regularizers`: losses of weights and activations."""

from __future__ import annotations

from typing import Any, Final

import weft.tf1 as tf
from weft.tf1.keras.storage.serialization import Configured, deserialized, serialize, table_of

__all__ = [
    "L1",
    "L1L2",
    "L2",
    "Regularizer",
    "deserialize",
    "get",
    "l1",
    "l1_l2",
    "l2",
    "serialize",
]


class Regularizer(Configured):
    """Base class: `regularizer(x)` returns a loss."""

    def __call__(self, x: Any) -> Any:
        """The loss of a tensor."""
        raise NotImplementedError


class L1L2(Regularizer):
    """l1 * sum(abs(x)) + l2 * sum(x ** 2)

    Args:
        l1, l2: factors of the two terms.
    """

    def __init__(self, l1: float = 0.0, l2: float = 0.0) -> None:
        self.l1, self.l2 = float(l1), float(l2)

    def __call__(self, x: Any) -> Any:
        """The loss of a tensor."""
        terms: list[Any] = []
        if self.l1:
            terms.append(self.l1 * tf.reduce_sum(tf.abs(x)))
        if self.l2:
            terms.append(self.l2 * tf.reduce_sum(tf.square(x)))
        return sum(terms[1:], terms[0]) if terms else tf.constant(0.0)


def l1(l: float = 0.01, **options: float) -> L1L2:
    """l * sum(abs(x))

    Args:
        l: the factor, which may be called `l1`, too.
    """
    return L1L2(l1=options.pop("l1", l), **options)


def l2(l: float = 0.01, **options: float) -> L1L2:
    """l * sum(x ** 2)

    Args:
        l: the factor, which may be called `l2`, too.
    """
    return L1L2(l2=options.pop("l2", l), **options)


def l1_l2(l1: float = 0.01, l2: float = 0.01) -> L1L2:
    """l1 * sum(abs(x)) + l2 * sum(x ** 2)

    Args:
        l1, l2: factors of the two terms.
    """
    return L1L2(l1, l2)


L1, L2 = l1, l2
NAMES: Final = table_of(globals(), "Regularizer")


def get(identifier: Any) -> Any:
    """A regularizer by name or configuration; other values as they are.

    Args:
        identifier: a name, a configuration, a function or `None`.

    Raises:
        UnknownKeyError: the name is unknown.
    """
    made = deserialized("regularizer", NAMES, identifier)
    return made() if isinstance(identifier, str) else made


deserialize = get
