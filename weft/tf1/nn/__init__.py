"""`tf.nn`: building blocks of neural networks."""

from weft.tf1.elementwise.arithmetic import log_sigmoid, sigmoid, tanh
from weft.tf1.indexing.lookup import embedding_lookup, in_top_k, top_k
from weft.tf1.indexing.order import depth_to_space, space_to_depth
from weft.tf1.nn import rnn_cell
from weft.tf1.nn.activation import (
    bias_add,
    crelu,
    elu,
    l2_loss,
    leaky_relu,
    log_poisson_loss,
    log_softmax,
    relu,
    relu6,
    relu_layer,
    selu,
    sigmoid_cross_entropy_with_logits,
    softmax,
    softmax_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits_v2,
    softplus,
    softsign,
    sparse_softmax_cross_entropy_with_logits,
    swish,
    weighted_cross_entropy_with_logits,
    xw_plus_b,
    zero_fraction,
)  # fmt: skip
from weft.tf1.nn.conv import (
    conv1d,
    conv2d,
    conv2d_transpose,
    conv3d,
    conv3d_transpose,
    convolution,
    depthwise_conv2d,
    depthwise_conv2d_native,
    separable_conv2d,
)  # fmt: skip
from weft.tf1.nn.ctc import (
    ctc_beam_search_decoder,
    ctc_beam_search_decoder_v2,
    ctc_greedy_decoder,
    ctc_loss,
)  # fmt: skip
from weft.tf1.nn.normalization import (
    batch_normalization,
    dropout,
    fused_batch_norm,
    l2_normalize,
    local_response_normalization,
    lrn,
    moments,
)  # fmt: skip
from weft.tf1.nn.pooling import avg_pool, avg_pool3d, max_pool, max_pool3d, pool
from weft.tf1.nn.raw_rnn import raw_rnn
from weft.tf1.nn.rnn import (
    bidirectional_dynamic_rnn,
    dynamic_rnn,
    static_bidirectional_rnn,
    static_rnn,
)  # fmt: skip
from weft.tf1.nn.sampled_loss import nce_loss, sampled_softmax_loss
from weft.tf1.random.candidate import log_uniform_candidate_sampler, uniform_candidate_sampler

__all__ = [
    "avg_pool", "avg_pool2d", "avg_pool3d", "batch_normalization", "bias_add",
    "bidirectional_dynamic_rnn", "conv1d", "conv2d", "conv2d_transpose", "conv3d",
    "conv3d_transpose", "convolution", "crelu", "ctc_beam_search_decoder",
    "ctc_beam_search_decoder_v2", "ctc_greedy_decoder", "ctc_loss", "depth_to_space",
    "depthwise_conv2d", "depthwise_conv2d_native", "dropout", "dynamic_rnn", "elu",
    "embedding_lookup", "fused_batch_norm", "in_top_k", "l2_loss", "l2_normalize", "leaky_relu",
    "local_response_normalization", "log_poisson_loss", "log_sigmoid", "log_softmax",
    "log_uniform_candidate_sampler", "lrn",
    "max_pool", "max_pool2d", "max_pool3d", "moments", "nce_loss", "pool", "raw_rnn", "relu",
    "relu6", "relu_layer", "rnn_cell", "sampled_softmax_loss", "selu",
    "separable_conv2d", "sigmoid", "sigmoid_cross_entropy_with_logits",
    "softmax", "softmax_cross_entropy_with_logits", "softmax_cross_entropy_with_logits_v2",
    "softplus", "softsign", "space_to_depth", "sparse_softmax_cross_entropy_with_logits",
    "static_bidirectional_rnn", "static_rnn", "swish", "tanh", "top_k",
    "uniform_candidate_sampler",
    "weighted_cross_entropy_with_logits", "xw_plus_b", "zero_fraction",
]  # fmt: skip

max_pool2d = max_pool
avg_pool2d = avg_pool
