"""TensorFlow 1's way of writing programs: define a graph, then run it in a session.

>>> import weft.tf1 as tf
>>> x = tf.placeholder(tf.float32, [None, 3])
>>> y = tf.reduce_sum(x * 2.0, reduction_indices=[1])
>>> with tf.Session() as sess:
...     sess.run(y, {x: [[1, 2, 3], [4, 5, 6]]})
array([12., 30.], dtype=float32)

Names, defaults, element types, operation names and errors follow TensorFlow 1.15. Absent: control
flow (`cond`, `while_loop`), operations whose output shape depends on data (`boolean_mask`,
one-argument `where`, `unique`), strings, complex numbers, queues, summaries, and estimators.
Random numbers come from own streams: reproducible, but other numbers than TensorFlow's.
"""

from __future__ import annotations

from weft.tf1 import (
    bitwise, errors, initializers, layers, linalg, losses, math, nn, random, train,
)  # fmt: skip
from weft.tf1.array_ops import (
    broadcast_static_shape, broadcast_to, concat, confusion_matrix, depth_to_space, diag,
    diag_part, ensure_shape, expand_dims, eye, fill, gather, gather_nd, invert_permutation,
    lin_space, linspace, matrix_band_part, matrix_diag, matrix_diag_part, matrix_set_diag,
    matrix_transpose, meshgrid, newaxis, one_hot, ones, ones_like, pad, placeholder,
    placeholder_with_default, range, rank, reshape, reverse, reverse_v2, roll, scatter_nd,
    segment_sum, sequence_mask, shape, shape_n, size, slice, sort, space_to_depth, split, squeeze,
    stack, strided_slice, tile, trace, transpose, unsorted_segment_sum, unstack, where, zeros,
    zeros_like, argsort,
)  # fmt: skip
from weft.tf1.clip_ops import (
    clip_by_average_norm, clip_by_global_norm, clip_by_norm, clip_by_value, global_norm,
)  # fmt: skip
from weft.tf1.collection import GraphKeys
from weft.tf1.control_ops import group, identity, identity_n, no_op, stop_gradient
from weft.tf1.control_ops import tuple_ as tuple
from weft.tf1.convert import constant, convert_n_to_tensor, convert_to_tensor, is_tensor
from weft.tf1.dtypes import (
    DType, as_dtype, bfloat16, double, float16, float32, float64, half, int8, int16, int32, int64,
    uint8, uint32, uint64,
)  # fmt: skip
from weft.tf1.dtypes import bool_ as bool
from weft.tf1.errors import OpError
from weft.tf1.gradients_impl import (
    AggregationMethod, UnconnectedGradients, gradients, hessians,
)  # fmt: skip
from weft.tf1.graph import (
    Graph, add_to_collection, add_to_collections, colocate_with, control_dependencies, device,
    get_collection, get_collection_ref, get_default_graph, name_scope, reset_default_graph,
)  # fmt: skip
from weft.tf1.indexed_slices import IndexedSlices, IndexedSlicesValue
from weft.tf1.init_ops import (
    constant_initializer, glorot_normal_initializer, glorot_uniform_initializer,
    ones_initializer, orthogonal_initializer, random_normal_initializer,
    random_uniform_initializer, truncated_normal_initializer, uniform_unit_scaling_initializer,
    variance_scaling_initializer, zeros_initializer,
)  # fmt: skip
from weft.tf1.linalg_ops import cholesky, matrix_determinant, matrix_inverse, matrix_solve
from weft.tf1.math_ops import (
    abs, accumulate_n, acos, acosh, add, add_n, asin, asinh, atan, atan2, atanh, bitcast, cast,
    ceil, cos, cosh, div, div_no_nan, divide, einsum, equal, erf, erfc, exp, expm1, floor,
    floor_div, floordiv, floormod, greater, greater_equal, is_finite, is_inf, is_nan, less,
    less_equal, log, log1p, log_sigmoid, logical_and, logical_not, logical_or,
    logical_xor, matmul, maximum, minimum, mod, multiply, negative, not_equal, pow, realdiv,
    reciprocal, rint, round, rsqrt, saturate_cast, sigmoid, sign, sin, sinh, sqrt, square,
    squared_difference, subtract, tan, tanh, tensordot, to_bfloat16, to_double, to_float,
    to_int32, to_int64, truediv, truncatediv, truncatemod,
)  # fmt: skip
from weft.tf1.random_ops import (
    multinomial, random_normal, random_shuffle, random_uniform, set_random_seed, truncated_normal,
)  # fmt: skip
from weft.tf1.reduction_ops import (
    arg_max, arg_min, argmax, argmin, count_nonzero, cumprod, cumsum, norm, reduce_all,
    reduce_any, reduce_logsumexp, reduce_max, reduce_mean, reduce_min, reduce_prod, reduce_sum,
)  # fmt: skip
from weft.tf1.script_ops import Print, numpy_function, py_func
from weft.tf1.session import (
    ConfigProto, GPUOptions, InteractiveSession, Session, get_default_session,
)  # fmt: skip
from weft.tf1.tensor import Operation, Tensor
from weft.tf1.tensor_shape import Dimension, TensorShape
from weft.tf1.user_op import Constant, Placeholder, topology_sort
from weft.tf1.variable import (
    Variable, all_variables, assign, assign_add, assign_sub, global_variables,
    global_variables_initializer, initialize_all_variables, initialize_local_variables,
    initialize_variables, is_variable_initialized, local_variables, local_variables_initializer,
    model_variables, moving_average_variables, report_uninitialized_variables, scatter_add,
    scatter_sub, scatter_update, trainable_variables, variables_initializer,
)  # fmt: skip
from weft.tf1.variable_scope import (
    AUTO_REUSE, VariableScope, get_local_variable, get_variable, get_variable_scope,
    variable_op_scope, variable_scope,
)  # fmt: skip

mul = multiply
sub = subtract
neg = negative
pack = stack
unpack = unstack
