"""`tf.train`: optimizers, learning rates, the global step."""

from weft.tf1.learning_rate import (
    ExponentialMovingAverage,
    cosine_decay,
    create_global_step,
    exponential_decay,
    get_global_step,
    get_or_create_global_step,
    global_step,
    inverse_time_decay,
    natural_exp_decay,
    piecewise_constant,
    piecewise_constant_decay,
    polynomial_decay,
)  # fmt: skip
from weft.tf1.optimizer import (
    AdagradOptimizer,
    AdamOptimizer,
    GradientDescentOptimizer,
    MomentumOptimizer,
    Optimizer,
    RMSPropOptimizer,
)  # fmt: skip

__all__ = [
    "AdagradOptimizer", "AdamOptimizer", "ExponentialMovingAverage", "GradientDescentOptimizer",
    "MomentumOptimizer", "Optimizer", "RMSPropOptimizer", "cosine_decay", "create_global_step",
    "exponential_decay", "get_global_step", "get_or_create_global_step", "global_step",
    "inverse_time_decay", "natural_exp_decay", "piecewise_constant", "piecewise_constant_decay",
    "polynomial_decay",
]  # fmt: skip
