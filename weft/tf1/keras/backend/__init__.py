"""`tf.keras.backend`: functions of tensors, sessions, values and settings."""

# ruff: noqa: I001 -- a list to read, not one name a line
from weft.tf1.keras.activations import elu, hard_sigmoid, relu
from weft.tf1.keras.backend.function import (
    abs, all, any, arange, argmax, argmin, batch_flatten, bias_add, binary_crossentropy, cast,
    cast_to_floatx, categorical_crossentropy, clip, concatenate, constant, cos, cumprod, cumsum,
    dot, dropout, dtype, equal, exp, expand_dims, eye, flatten, gather, gradients, greater,
    greater_equal, identity, int_shape, is_tensor, l2_normalize, less, less_equal, log,
    logsumexp, max, maximum, mean, min, minimum, moving_average_update, name_scope, ndim,
    not_equal, one_hot, ones, ones_like, permute_dimensions, pow, print_tensor, prod,
    random_normal, random_uniform, repeat, reshape, reverse, round, shape, sigmoid, sign, sin,
    softmax, softplus, softsign, sparse_categorical_crossentropy, sqrt, square, squeeze, stack,
    std, stop_gradient, sum, switch, tanh, tile, transpose, truncated_normal, var, zeros,
    zeros_like,
)  # fmt: skip
from weft.tf1.keras.backend.state import (
    backend, batch_get_value, batch_set_value, clear_session, count_params, eval, function,
    get_uid, get_value, is_keras_tensor, learning_phase_scope, placeholder, reset_uids,
    set_value, update, update_add, update_sub, variable,
)  # fmt: skip
from weft.tf1.keras.engine.sessions import get_session, set_session
from weft.tf1.keras.engine.settings import (
    epsilon,
    floatx,
    image_data_format,
    in_test_phase,
    in_train_phase,
    learning_phase,
    set_epsilon,
    set_floatx,
    set_image_data_format,
    set_learning_phase,
)  # fmt: skip
from weft.tf1.keras.layers.border import repeat_elements
from weft.tf1.keras.layers.merge import batch_dot

__all__ = [
    "abs", "all", "any", "arange", "argmax", "argmin", "backend", "batch_dot", "batch_flatten",
    "batch_get_value", "batch_set_value", "bias_add", "binary_crossentropy", "cast",
    "cast_to_floatx", "categorical_crossentropy", "clear_session", "clip", "concatenate",
    "constant", "cos", "count_params", "cumprod", "cumsum", "dot", "dropout", "dtype", "elu",
    "epsilon", "equal", "eval", "exp", "expand_dims", "eye", "flatten", "floatx", "function",
    "gather", "get_session", "get_uid", "get_value", "gradients", "greater", "greater_equal",
    "hard_sigmoid", "identity", "image_data_format", "in_test_phase", "in_train_phase",
    "int_shape", "is_keras_tensor", "is_tensor", "l2_normalize", "learning_phase",
    "learning_phase_scope", "less", "less_equal", "log", "logsumexp", "max", "maximum", "mean",
    "min", "minimum", "moving_average_update", "name_scope", "ndim", "not_equal", "one_hot",
    "ones", "ones_like", "permute_dimensions", "placeholder", "pow", "print_tensor", "prod",
    "random_normal", "random_uniform", "relu", "repeat", "repeat_elements", "reset_uids",
    "reshape", "reverse", "round", "set_epsilon", "set_floatx", "set_image_data_format",
    "set_learning_phase", "set_session", "set_value", "shape", "sigmoid", "sign", "sin",
    "softmax", "softplus", "softsign", "sparse_categorical_crossentropy", "sqrt", "square",
    "squeeze", "stack", "std", "stop_gradient", "sum", "switch", "tanh", "tile", "transpose",
    "truncated_normal", "update", "update_add", "update_sub", "var", "variable", "zeros",
    "zeros_like",
]  # fmt: skip
