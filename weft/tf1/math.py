"""`tf.math`: arithmetic, comparisons, reductions."""

# A list to read; `gather` makes these names public.
# ruff: noqa: F401, F403, I001
# pyright: reportUnusedImport=false
from weft import exports as _exports
from weft.tf1.elementwise.arithmetic import (
    accumulate_n, add_n, divide, logical_xor, pow, round, scalar_mul, truediv,
)  # fmt: skip
from weft.tf1.elementwise.declared import *
from weft.tf1.elementwise.declared import multiply_no_nan as multiply_no_nan
from weft.tf1.indexing.ranking import in_top_k, top_k
from weft.tf1.indexing.order import confusion_matrix, invert_permutation
from weft.tf1.indexing.segment_reduction import *
from weft.tf1.nn.activation import log_softmax, softmax, softplus, softsign, zero_fraction
from weft.tf1.nn.normalization import l2_normalize
from weft.tf1.reduction import (
    argmax, argmin, count_nonzero, reduce_all, reduce_any, reduce_euclidean_norm,
    reduce_logsumexp, reduce_max, reduce_mean, reduce_min, reduce_prod, reduce_std, reduce_sum,
    reduce_variance,
)  # fmt: skip

_exports.gather(globals())
