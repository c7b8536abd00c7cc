"""`tf.train`'s optimizers, one a file."""

from weft.tf1.optimizer.adagrad import AdagradOptimizer
from weft.tf1.optimizer.adam import AdamOptimizer
from weft.tf1.optimizer.base import Optimizer
from weft.tf1.optimizer.gradient_descent import GradientDescentOptimizer
from weft.tf1.optimizer.momentum import MomentumOptimizer
from weft.tf1.optimizer.rmsprop import RMSPropOptimizer

__all__ = [
    "AdagradOptimizer", "AdamOptimizer", "GradientDescentOptimizer", "MomentumOptimizer",
    "Optimizer", "RMSPropOptimizer",
]  # fmt: skip
