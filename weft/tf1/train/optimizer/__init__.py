"""`tf.train`'s optimizers, one per file."""

from weft.tf1.train.optimizer.adagrad import AdagradOptimizer
from weft.tf1.train.optimizer.adam import AdamOptimizer
from weft.tf1.train.optimizer.base import Optimizer
from weft.tf1.train.optimizer.gradient_descent import GradientDescentOptimizer
from weft.tf1.train.optimizer.momentum import MomentumOptimizer
from weft.tf1.train.optimizer.rmsprop import RMSPropOptimizer

__all__ = [
    "AdagradOptimizer", "AdamOptimizer", "GradientDescentOptimizer", "MomentumOptimizer",
    "Optimizer", "RMSPropOptimizer",
]  # fmt: skip
