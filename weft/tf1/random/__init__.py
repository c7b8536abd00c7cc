"""`tf.random`: random tensors by their short names."""

from weft.tf1.random.candidate import log_uniform_candidate_sampler, uniform_candidate_sampler
from weft.tf1.random.distribution import (
    categorical,
    multinomial,
    random_shuffle,
    set_random_seed,
    truncated_normal,
)
from weft.tf1.random.distribution import random_normal as normal
from weft.tf1.random.distribution import random_uniform as uniform

shuffle = random_shuffle

__all__ = [
    "categorical", "log_uniform_candidate_sampler", "multinomial", "normal", "set_random_seed",
    "shuffle", "truncated_normal", "uniform", "uniform_candidate_sampler",
]  # fmt: skip
