"""`tf.math`: arithmetic, comparisons, reductions."""

from weft.tf1.array_ops import (
    confusion_matrix, invert_permutation, segment_sum, unsorted_segment_sum,
)  # fmt: skip
from weft.tf1.math_ops import (
    abs, accumulate_n, acos, acosh, add, add_n, asin, asinh, atan, atan2, atanh, ceil, cos,
    cosh, div_no_nan, divide, equal, erf, erfc, exp, expm1, floor, floordiv, floormod, greater,
    greater_equal, is_finite, is_inf, is_nan, less, less_equal, log, log1p, log_sigmoid,
    logical_and, logical_not, logical_or, logical_xor, maximum, minimum, mod, multiply,
    multiply_no_nan, negative, not_equal, pow, reciprocal, rint, round, rsqrt, sigmoid, sign,
    sin, sinh, sqrt, square, squared_difference, subtract, tan, tanh, truediv,
)  # fmt: skip
from weft.tf1.nn_ops import (
    in_top_k, l2_normalize, log_softmax, softmax, softplus, softsign, top_k, zero_fraction,
)  # fmt: skip
from weft.tf1.reduction_ops import (
    argmax, argmin, count_nonzero, cumprod, cumsum, reduce_all, reduce_any,
    reduce_euclidean_norm, reduce_logsumexp, reduce_max, reduce_mean, reduce_min, reduce_prod,
    reduce_std, reduce_sum, reduce_variance,
)  # fmt: skip

__all__ = [
    "abs", "accumulate_n", "acos", "acosh", "add", "add_n", "argmax", "argmin", "asin", "asinh",
    "atan", "atan2", "atanh", "ceil", "confusion_matrix", "cos", "cosh", "count_nonzero",
    "cumprod", "cumsum", "div_no_nan", "divide", "equal", "erf", "erfc", "exp", "expm1",
    "floor", "floordiv", "floormod", "greater", "greater_equal", "in_top_k",
    "invert_permutation", "is_finite", "is_inf", "is_nan", "l2_normalize", "less", "less_equal",
    "log", "log1p", "log_sigmoid", "log_softmax", "logical_and", "logical_not",
    "logical_or", "logical_xor", "maximum", "minimum", "mod", "multiply", "multiply_no_nan",
    "negative", "not_equal", "pow", "reciprocal", "reduce_all", "reduce_any",
    "reduce_euclidean_norm", "reduce_logsumexp", "reduce_max", "reduce_mean", "reduce_min",
    "reduce_prod", "reduce_std", "reduce_sum", "reduce_variance", "rint", "round", "rsqrt",
    "segment_sum", "sigmoid", "sign", "sin", "sinh", "softmax", "softplus", "softsign", "sqrt",
    "square", "squared_difference", "subtract", "tan", "tanh", "top_k", "truediv",
    "unsorted_segment_sum", "zero_fraction",
]  # fmt: skip
