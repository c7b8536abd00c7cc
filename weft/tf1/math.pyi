"""Made by `python -m tools.package_stubs`."""

from weft.tf1.elementwise.arithmetic import accumulate_n as accumulate_n
from weft.tf1.elementwise.arithmetic import add_n as add_n
from weft.tf1.elementwise.arithmetic import divide as divide
from weft.tf1.elementwise.arithmetic import logical_xor as logical_xor
from weft.tf1.elementwise.arithmetic import pow as pow
from weft.tf1.elementwise.arithmetic import round as round
from weft.tf1.elementwise.arithmetic import scalar_mul as scalar_mul
from weft.tf1.elementwise.arithmetic import truediv as truediv
from weft.tf1.elementwise.declared import *
from weft.tf1.elementwise.declared import multiply_no_nan as multiply_no_nan
from weft.tf1.indexing.ranking import in_top_k as in_top_k
from weft.tf1.indexing.ranking import top_k as top_k
from weft.tf1.indexing.order import confusion_matrix as confusion_matrix
from weft.tf1.indexing.order import invert_permutation as invert_permutation
from weft.tf1.indexing.segment_reduction import *
from weft.tf1.nn.activation import log_softmax as log_softmax
from weft.tf1.nn.activation import softmax as softmax
from weft.tf1.nn.activation import softplus as softplus
from weft.tf1.nn.activation import softsign as softsign
from weft.tf1.nn.activation import zero_fraction as zero_fraction
from weft.tf1.nn.normalization import l2_normalize as l2_normalize
from weft.tf1.reduction import argmax as argmax
from weft.tf1.reduction import argmin as argmin
from weft.tf1.reduction import count_nonzero as count_nonzero
from weft.tf1.reduction import reduce_all as reduce_all
from weft.tf1.reduction import reduce_any as reduce_any
from weft.tf1.reduction import reduce_euclidean_norm as reduce_euclidean_norm
from weft.tf1.reduction import reduce_logsumexp as reduce_logsumexp
from weft.tf1.reduction import reduce_max as reduce_max
from weft.tf1.reduction import reduce_mean as reduce_mean
from weft.tf1.reduction import reduce_min as reduce_min
from weft.tf1.reduction import reduce_prod as reduce_prod
from weft.tf1.reduction import reduce_std as reduce_std
from weft.tf1.reduction import reduce_sum as reduce_sum
from weft.tf1.reduction import reduce_variance as reduce_variance
