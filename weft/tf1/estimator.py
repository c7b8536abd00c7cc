"""`tf.estimator`: the names of modes, which model functions compare with; no estimators."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["ModeKeys"]


class ModeKeys:
    """What a model function builds a graph for.

    >>> import weft.tf1 as tf
    >>> tf.estimator.ModeKeys.TRAIN
    'train'
    """

    TRAIN: Final = "train"
    EVAL: Final = "eval"
    PREDICT: Final = "infer"


def __getattr__(name: str) -> Any:
    raise AttributeError(f"weft.tf1.estimator has no {name!r}: estimators are not supported yet")
