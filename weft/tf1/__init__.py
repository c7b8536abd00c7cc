"""TensorFlow 1's API: define a graph, then run it in a session.

>>> import weft.tf1 as tf
>>> x = tf.placeholder(tf.float32, [None, 3])
>>> y = tf.reduce_sum(x * 2.0, reduction_indices=[1])
>>> with tf.Session() as sess:
...     sess.run(y, {x: [[1, 2, 3], [4, 5, 6]]})
array([12., 30.], dtype=float32)

Names, defaults, element types, operation names and errors follow TensorFlow 1.15. Absent:
operations whose output shape depends on data (`boolean_mask`, one-argument `where`, `unique`),
complex numbers, and estimators.
Random numbers come from own streams: reproducible, but other numbers than TensorFlow's.
"""

# ruff: noqa: I001 -- a list to read, not one name a line
from __future__ import annotations

import importlib as _importlib
from typing import Any

from weft.ops.refusal import guard as _guard
from weft.tf1 import bitwise, contrib, errors, initializers, layers, losses, math, metrics
from weft.tf1 import app, compat, data, estimator, flags, gfile, logging
from weft.tf1 import linalg
from weft.tf1 import nn
from weft.tf1 import python_io, random
from weft.tf1 import summary, train  # fmt: skip
from weft.tf1.shape.arrangement import (
    broadcast_static_shape, broadcast_to, concat, ensure_shape, expand_dims, pad, rank, reshape,
    reverse, reverse_v2, roll, shape, shape_n, size, split, squeeze, stack, tile, transpose,
    unstack,
)  # fmt: skip
from weft.tf1.elementwise.clip import (
    clip_by_average_norm, clip_by_global_norm, clip_by_norm, clip_by_value, global_norm,
)  # fmt: skip
from weft.tf1.framework.collection import GraphKeys
from weft.tf1.framework.host import string
from weft.tf1.data.reader import (
    FixedLengthRecordReader, TextLineReader, TFRecordReader, WholeFileReader,
)  # fmt: skip
from weft.tf1.data.decode import (
    decode_csv, decode_image, decode_jpeg, decode_png, decode_raw, parse_example,
    parse_single_example, read_file,
)  # fmt: skip
from weft.formats.example_spec import FixedLenFeature, FixedLenSequenceFeature, VarLenFeature
from weft.tf1.control.branch import case, cond, switch_case
from weft.tf1.control.dependency import group, identity, identity_n, no_op, stop_gradient
from weft.tf1.control.dependency import tuple_ as tuple
from weft.tf1.control.functional_loop import foldl, foldr, map_fn, scan
from weft.tf1.control.loop import while_loop
from weft.tf1.nn.rnn import reverse_sequence
from weft.tf1.control.tensor_array import TensorArray
from weft.tf1.elementwise.declared import exported, exports
from weft.tf1.framework.convert import (
    constant,
    convert_n_to_tensor,
    convert_to_tensor,
    is_tensor,
    of_op,
)
from weft.tf1.framework.dtypes import (
    DType, as_dtype, bfloat16, double, float16, float32, float64, half, int8, int16, int32, int64,
    uint8, uint32, uint64,
)  # fmt: skip
from weft.tf1.framework.dtypes import bool_ as bool
from weft.tf1.linalg.contraction import einsum, tensordot
from weft.tf1.summary.proto import Event, Summary
from weft.tf1.errors import OpError
from weft.tf1.creation import (
    eye, fill, lin_space, linspace, meshgrid, one_hot, ones, ones_like, placeholder,
    placeholder_with_default, range, sequence_mask, sparse_placeholder, zeros, zeros_like,
)  # fmt: skip
from weft.tf1.control.gradient import AggregationMethod, UnconnectedGradients, gradients, hessians
from weft.tf1.framework.graph import (
    Graph, add_to_collection, add_to_collections, colocate_with, control_dependencies, device,
    get_collection, get_collection_ref, get_default_graph, name_scope, reset_default_graph,
)  # fmt: skip
from weft.tf1.framework.indexed_slices import IndexedSlices, IndexedSlicesValue
from weft.tf1.variable.initializer import (
    constant_initializer, glorot_normal_initializer, glorot_uniform_initializer, ones_initializer,
    orthogonal_initializer, random_normal_initializer, random_uniform_initializer,
    truncated_normal_initializer, uniform_unit_scaling_initializer, variance_scaling_initializer,
    zeros_initializer,
)  # fmt: skip
from weft.tf1.linalg.factorization import cholesky, matrix_determinant, matrix_inverse, matrix_solve
from weft.tf1.elementwise.arithmetic import (
    abs, accumulate_n, acos, acosh, add, add_n, asin, asinh, atan, atan2, atanh, bitcast, cast,
    ceil, cos, cosh, div, div_no_nan, divide, equal, erf, erfc, exp, expm1, floor, floor_div,
    floordiv, floormod, greater, greater_equal, is_finite, is_inf, is_nan, less, less_equal, log,
    log1p, log_sigmoid, logical_and, logical_not, logical_or, logical_xor, matmul, maximum, minimum,
    mod, multiply, negative, not_equal, pow, realdiv, reciprocal, rint, round, rsqrt, saturate_cast,
    sigmoid, sign, sin, sinh, sqrt, square, squared_difference, subtract, tan, tanh, to_bfloat16,
    to_double, to_float, to_int32, to_int64, truediv, truncatediv, truncatemod,
)  # fmt: skip
from weft.tf1.linalg.diagonal import (
    diag, diag_part, matrix_band_part, matrix_diag, matrix_diag_part, matrix_set_diag,
    matrix_transpose, trace,
)  # fmt: skip
from weft.tf1.random.distribution import (
    multinomial, random_normal, random_shuffle, random_uniform, set_random_seed, truncated_normal,
)  # fmt: skip
from weft.tf1.reduction import (
    arg_max, arg_min, argmax, argmin, count_nonzero, cumprod, cumsum, norm, reduce_all, reduce_any,
    reduce_logsumexp, reduce_max, reduce_mean, reduce_min, reduce_prod, reduce_sum,
)  # fmt: skip
from weft.tf1.control.py_func import Print, numpy_function, py_func
from weft.tf1.indexing.order import (
    argsort, confusion_matrix, depth_to_space, invert_permutation, sort, space_to_depth,
)  # fmt: skip
from weft.tf1.indexing.segment_reduction import (
    segment_max,
    segment_mean,
    segment_min,
    segment_prod,
    segment_sum,
    unsorted_segment_max,
    unsorted_segment_mean,
    unsorted_segment_min,
    unsorted_segment_prod,
    unsorted_segment_sqrt_n,
    unsorted_segment_sum,
)  # fmt: skip
from weft.tf1.session.options import ConfigProto, GPUOptions
from weft.tf1.session.session import InteractiveSession, Session, get_default_session
from weft.tf1.session.tracing import RunMetadata, RunOptions
from weft.tf1.indexing.slicing import (
    gather,
    gather_nd,
    newaxis,
    scatter_nd,
    slice,
    strided_slice,
    where,
)
from weft.tf1.framework.sparse_tensor import SparseTensor, SparseTensorValue
from weft.tf1.framework.tensor import Operation, Tensor
from weft.tf1.framework.tensor_shape import Dimension, TensorShape
from weft.tf1.control.user_op import Constant, Placeholder, topology_sort
from weft.tf1.variable.variable import (
    Variable, assign, assign_add, assign_sub, scatter_add, scatter_sub, scatter_update,
)  # fmt: skip
from weft.tf1.variable.variable_list import (
    all_variables, global_variables, global_variables_initializer, initialize_all_variables,
    initialize_local_variables, initialize_variables, is_variable_initialized, local_variables,
    local_variables_initializer, model_variables, moving_average_variables,
    report_uninitialized_variables, trainable_variables, variables_initializer,
)  # fmt: skip
from weft.tf1.variable.variable_scope import (
    AUTO_REUSE, VariableScope, get_local_variable, get_variable, get_variable_scope,
    variable_op_scope, variable_scope,
)  # fmt: skip

mul = multiply
sub = subtract
neg = negative
pack = stack
unpack = unstack

__all__ = [
    "AUTO_REUSE", "AggregationMethod", "ConfigProto", "Constant", "DType", "Dimension", "Event",
    "FixedLenFeature", "FixedLenSequenceFeature", "FixedLengthRecordReader", "GPUOptions", "Graph",
    "GraphKeys", "IndexedSlices", "IndexedSlicesValue", "InteractiveSession", "OpError",
    "Operation", "Placeholder", "Print", "RunMetadata", "RunOptions", "Session", "SparseTensor",
    "SparseTensorValue", "Summary", "TFRecordReader", "Tensor", "TensorArray", "TensorShape",
    "TextLineReader", "UnconnectedGradients", "VarLenFeature", "Variable", "VariableScope",
    "WholeFileReader", "abs", "accumulate_n", "acos", "acosh", "add", "add_n", "add_to_collection",
    "add_to_collections", "all_variables", "app", "arg_max", "arg_min", "argmax", "argmin",
    "argsort", "as_dtype", "asin", "asinh", "assign", "assign_add", "assign_sub", "atan", "atan2",
    "atanh", "bfloat16", "bitcast", "bitwise", "bool", "broadcast_static_shape", "broadcast_to",
    "case", "cast", "ceil", "cholesky", "clip_by_average_norm", "clip_by_global_norm",
    "clip_by_norm", "clip_by_value", "colocate_with", "compat", "concat", "cond",
    "confusion_matrix",
    "constant", "constant_initializer", "contrib", "control_dependencies", "convert_n_to_tensor",
    "convert_to_tensor", "cos", "cosh", "count_nonzero", "cumprod", "cumsum", "data", "decode_csv",
    "decode_image", "decode_jpeg", "decode_png", "decode_raw", "depth_to_space", "device", "diag",
    "diag_part", "div", "div_no_nan", "divide", "double", "einsum", "ensure_shape", "equal", "erf",
    "erfc", "errors", "estimator", "exp", "expand_dims", "expm1", "eye", "fill", "flags", "float16",
    "float32",
    "float64", "floor", "floor_div", "floordiv", "floormod", "foldl", "foldr", "gather",
    "gather_nd", "get_collection", "get_collection_ref", "get_default_graph", "get_default_session",
    "get_local_variable", "get_variable", "get_variable_scope", "gfile", "global_norm",
    "global_variables", "global_variables_initializer", "glorot_normal_initializer",
    "glorot_uniform_initializer", "gradients", "greater", "greater_equal", "group", "half",
    "hessians", "identity", "identity_n", "initialize_all_variables", "initialize_local_variables",
    "initialize_variables", "initializers", "int8", "int16", "int32", "int64", "invert_permutation",
    "is_finite", "is_inf", "is_nan", "is_tensor", "is_variable_initialized", "layers", "less",
    "less_equal", "lin_space", "linalg", "linspace", "local_variables",
    "local_variables_initializer", "log", "log1p", "log_sigmoid", "logging", "logical_and",
    "logical_not", "logical_or", "logical_xor", "losses", "map_fn", "math", "matmul",
    "matrix_band_part", "matrix_determinant", "matrix_diag", "matrix_diag_part", "matrix_inverse",
    "matrix_set_diag", "matrix_solve", "matrix_transpose", "maximum", "meshgrid", "metrics",
    "minimum", "mod", "model_variables", "moving_average_variables", "mul", "multinomial",
    "multiply", "name_scope", "neg", "negative", "newaxis", "nn", "no_op", "norm", "not_equal",
    "numpy_function", "one_hot", "ones", "ones_initializer", "ones_like", "orthogonal_initializer",
    "pack", "pad", "parse_example", "parse_single_example", "placeholder",
    "placeholder_with_default", "pow", "py_func", "python_io", "random", "random_normal",
    "random_normal_initializer", "random_shuffle", "random_uniform", "random_uniform_initializer",
    "range", "rank", "read_file", "realdiv", "reciprocal", "reduce_all", "reduce_any",
    "reduce_logsumexp", "reduce_max", "reduce_mean", "reduce_min", "reduce_prod", "reduce_sum",
    "report_uninitialized_variables", "reset_default_graph", "reshape", "reverse",
    "reverse_sequence", "reverse_v2", "rint", "roll", "round", "rsqrt", "saturate_cast", "scan",
    "scatter_add", "scatter_nd", "scatter_sub", "scatter_update", "segment_max", "segment_mean",
    "segment_min", "segment_prod", "segment_sum", "sequence_mask", "set_random_seed", "shape",
    "shape_n", "sigmoid", "sign", "sin", "sinh", "size", "slice", "sort", "space_to_depth",
    "sparse_placeholder", "split", "sqrt", "square", "squared_difference", "squeeze", "stack",
    "stop_gradient", "strided_slice", "string", "sub", "subtract", "summary", "switch_case", "tan",
    "tanh", "tensordot", "tile", "to_bfloat16", "to_double", "to_float", "to_int32", "to_int64",
    "topology_sort", "trace", "train", "trainable_variables", "transpose", "truediv",
    "truncated_normal", "truncated_normal_initializer", "truncatediv", "truncatemod", "tuple",
    "uint8", "uint32", "uint64", "uniform_unit_scaling_initializer", "unpack",
    "unsorted_segment_max", "unsorted_segment_mean", "unsorted_segment_min",
    "unsorted_segment_prod", "unsorted_segment_sqrt_n", "unsorted_segment_sum", "unstack",
    "variable_op_scope", "variable_scope", "variables_initializer", "variance_scaling_initializer",
    "where", "while_loop", "zeros", "zeros_initializer", "zeros_like",
]  # fmt: skip

for _part in (
    bitwise,
    initializers,
    layers,
    linalg,
    losses,
    math,
    metrics,
    nn,
    random,
    summary,
    train,
):
    _guard(vars(_part))
_guard(globals())

_ABSENT = {
    "shapes that depend on data": ("boolean_mask", "setdiff1d", "sparse_to_dense", "unique"),
    "strings and files": ("as_string", "string_join", "string_split"),
    "queues in the graph": ("FIFOQueue", "queue"),
    "estimators": ("feature_column",),
    "complex numbers": ("complex", "complex64", "complex128", "fft", "signal"),
}


def __getattr__(name: str) -> Any:
    if name == "keras":  # lies above: Keras runs on the trainer
        return _importlib.import_module("weft.tf1.keras")
    for what, names in _ABSENT.items():
        if name in names:
            raise AttributeError(f"weft.tf1 has no {name!r}: {what} is not supported yet")
    op = exported(name)
    if op is not None:
        return of_op(op)
    raise AttributeError(
        f"weft.tf1 has no {name!r}: docs/TF1.md says what it has and what is absent"
    )


def __dir__() -> list[str]:
    return sorted({*globals(), *exports(), "keras"})
