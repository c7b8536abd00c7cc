"""What is done to parameters and gradients beside training, and sequences of other lengths."""

from weft.nn.utils import parametrizations, parametrize, prune, rnn
from weft.nn.utils.gradient import clip_grad_norm_, clip_grad_value_, get_total_norm
from weft.nn.utils.vector import parameters_to_vector, vector_to_parameters
from weft.nn.utils.weight import (
    remove_spectral_norm,
    remove_weight_norm,
    spectral_norm,
    weight_norm,
)

__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "get_total_norm",
    "parameters_to_vector",
    "parametrizations",
    "parametrize",
    "prune",
    "remove_spectral_norm",
    "remove_weight_norm",
    "rnn",
    "spectral_norm",
    "vector_to_parameters",
    "weight_norm",
]
