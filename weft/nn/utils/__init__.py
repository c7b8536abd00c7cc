"""Tools for parameters and gradients, and for sequences of different lengths."""

from weft.nn.utils import parametrizations, parametrize, prune, rnn, stateless
from weft.nn.utils.fresh import skip_init
from weft.nn.utils.fusion import (
    fuse_conv_bn_eval,
    fuse_conv_bn_weights,
    fuse_linear_bn_eval,
    fuse_linear_bn_weights,
)
from weft.nn.utils.gradient import clip_grad_norm_, clip_grad_value_, get_total_norm
from weft.nn.utils.prefix import consume_prefix_in_state_dict_if_present
from weft.nn.utils.vector import parameters_to_vector, vector_to_parameters
from weft.nn.utils.weight import (
    remove_spectral_norm,
    remove_weight_norm,
    spectral_norm,
    weight_norm,
)
from weft.ops.refusal import guard

__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "consume_prefix_in_state_dict_if_present",
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
    "get_total_norm",
    "parameters_to_vector",
    "parametrizations",
    "parametrize",
    "prune",
    "remove_spectral_norm",
    "remove_weight_norm",
    "rnn",
    "skip_init",
    "spectral_norm",
    "stateless",
    "vector_to_parameters",
    "weight_norm",
]

guard(globals())
