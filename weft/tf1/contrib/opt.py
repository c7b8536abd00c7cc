"""`tf.contrib.opt`: Adam for tables of which a step uses a few rows."""

from __future__ import annotations

from weft.tf1.train.optimizer.adam import AdamOptimizer

__all__ = ["LazyAdamOptimizer"]


class LazyAdamOptimizer(AdamOptimizer):
    """Adam that leaves alone the rows of a table that have no gradient."""

    _lazy = True
