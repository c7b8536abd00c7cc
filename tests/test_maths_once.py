"""Formulas are in `weft/ops` alone: front ends add names, defaults and errors."""

import pytest

from tools.own_maths import in_front_ends, own_maths

NUMBERS = "works on plain numbers, sizes and arrays, which the text does not show"
ORDER = "has decisions between its steps (values that are looked at, draws, loops of factors)"
ADDED = "adds up what other functions give, each in its own type"
NODES = "makes the nodes that programs look up by name"
FEEDS = "depends on what is known of feeds, which graphs alone do not tell"
OWN = "TensorFlow 1's own definition, of use to no other front end"
GIVEN = "calls activations and layers that users give, which take tensors"
LAYERS = "puts layers and functions of its own front end together"
VARIABLES = "makes, reads or assigns variables between its steps"
FIGURE = "counts of one metric, added up over batches"

# What computes by itself nevertheless, and why
LEFT = {
    "jax/at.py:_limited": "clamps one entry of a subscript: a Python number or an array",
    "jax/at.py:_Place._outside": "walks a subscript, entry by entry, with a count of axes",
    "jax/example_libraries/stax.py:BatchNorm": "scales and shifts, each only if asked for",
    "jax/example_libraries/stax.py:_pooling": "divides a sum over windows by their sizes",
    "jax/experimental/ode.py:_solution": "calls the user's function between its steps",
    "jax/experimental/ode.py:_integrated": "the loop around the user's function: steps are in ops",
    "jax/lax/control.py:fori_loop": "counts turns of a loop",
    "jax/lax/window.py:_combined": "calls the user's function for each element of a window",
    "jax/scipy/sparse/linalg.py:bicgstab": GIVEN,
    "jax/scipy/sparse/linalg.py:cg": GIVEN,
    "jax/numpy/joining.py:block": NUMBERS,
    "jax/numpy/statistic.py:histogram_bin_edges": "chooses edges from the extreme elements",
    "jax/random/draw.py:categorical": "adds drawn numbers, of a shape that options decide",
    "jax/scipy/optimize.py:minimize": "a line search that reads values of the user's function",
    "eager/functions/creation/arange.py:arange": NUMBERS,
    "eager/functions/creation/arange.py:range": NUMBERS,
    "eager/functions/elementwise/unary.py:round": ADDED,
    "eager/functions/indexing/scatter.py:scatter_reduce": ORDER,
    "eager/functions/linalg/low_rank.py:svd_lowrank": ORDER,
    "eager/functions/linalg/product.py:addr": ADDED,
    "eager/functions/linalg/solve.py:lstsq": ORDER,
    "eager/functions/linalg/solve.py:matrix_rank": ADDED,
    "eager/functions/linalg/solve.py:pinv": ADDED,
    "eager/functions/random/inplace.py:Methods.random_": NUMBERS,
    "eager/functions/reduction/norm.py:cond": ORDER,
    "linalg.py:_cheapest": NUMBERS,
    "numpy/searching.py:digitize": ORDER,
    "models/beam.py:Search.normalized": LAYERS,
    "models/beam.py:_chosen": LAYERS,
    "models/beam.py:_run": LAYERS,
    "models/bert.py:BERT.forward": LAYERS,
    "models/decoding.py:Sampling.draw": LAYERS,
    "models/decoding.py:_likely": LAYERS,
    "models/decoding.py:_loop": LAYERS,
    "models/gnmt.py:GNMT.attend": LAYERS,
    "models/resnet.py:Basic.forward": LAYERS,
    "models/resnet.py:Bottleneck.forward": LAYERS,
    "models/transformer.py:Block._finished": LAYERS,
    "models/vae.py:VAE.forward": LAYERS,
    "models/vae.py:VAE.loss": LAYERS,
    "nn/functional/convolution.py:_pads": NUMBERS,
    "nn/functional/fractional.py:fractional_max_pool": NUMBERS,
    "nn/functional/padding.py:_check": NUMBERS,
    "nn/functional/pooling.py:unpool": NUMBERS,
    "nn/functional/vision.py:_outputs": NUMBERS,
    "nn/functional/vision.py:interpolate": NUMBERS,
    "nn/init.py:calculate_gain": NUMBERS,
    "nn/init.py:kaiming_uniform_": NUMBERS,
    "nn/layer/adaptive_softmax.py:AdaptiveLogSoftmaxWithLoss.__post_init__": NUMBERS,
    "nn/layer/adaptive_softmax.py:AdaptiveLogSoftmaxWithLoss.forward": ORDER,
    "nn/layer/adaptive_softmax.py:AdaptiveLogSoftmaxWithLoss.log_prob": LAYERS,
    "nn/layer/convolution.py:_ConvTranspose._missing": NUMBERS,
    "nn/layer/embedding_collection.py:EmbeddingBagCollection._plain": NUMBERS,
    "nn/layer/experts.py:MixtureOfExperts.capacity": NUMBERS,
    "nn/layer/graph.py:GATConv.forward": LAYERS,
    "nn/layer/keyed.py:KeyedJaggedTensor.permuted": NUMBERS,
    "nn/layer/packed_sequence.py:pack_padded_sequence": NUMBERS,
    "nn/layer/packed_sequence.py:run_backwards": NUMBERS,
    "nn/layer/recurrent.py:RNNBase._layers": NUMBERS,
    "nn/layer/recurrent.py:RNNBase._make_layer": NUMBERS,
    "nn/layer/sync_norm.py:SyncBatchNorm.forward": "sums over ranks between its steps",
    "nn/layer/transformer.py:TransformerDecoderLayer.forward": LAYERS,
    "nn/layer/transformer.py:TransformerEncoderLayer.forward": LAYERS,
    "nn/module/container.py:ModuleList.__repr__": NUMBERS,
    "nn/parallel/large.py:Large.exchanged": NUMBERS,
    "nn/parallel/state.py:_load": NUMBERS,
    "nn/utils/fusion.py:_fused": "computes the weights once, when a network is prepared",
    "nn/utils/parametrizations.py:_reflected": ORDER,
    "nn/utils/parametrizations.py:_turned": ORDER,
    "nn/utils/weight.py:_Divided.backward": "a gradient by vectors as they were at the call",
    "numpy/creation.py:_between": NUMBERS,
    "numpy/creation.py:arange": NUMBERS,
    "numpy/random.py:uniform": ADDED,
    "numpy/statistical.py:ptp": ADDED,
    "scipy/stats/t.py:cdf": "calls SciPy's functions, which refuse gradients that they lack",
    "sparse.py:addmm": ADDED,
    "sparse.py:sampled_addmm": ADDED,
    "tf1/contrib/crf.py:_mask": OWN,
    "tf1/contrib/crf.py:crf_binary_score": OWN,
    "tf1/contrib/crf.py:crf_log_norm": GIVEN,
    "tf1/contrib/crf.py:crf_unary_score": OWN,
    "tf1/contrib/crf.py:viterbi_decode": NUMBERS,
    "tf1/contrib/layers/convolution.py:convolution2d_transpose": NUMBERS,
    "tf1/contrib/layers/dense.py:unit_norm": OWN,
    "tf1/contrib/layers/optimizer.py:_changed": ADDED,
    "tf1/contrib/legacy_seq2seq/loss.py:sequence_loss_by_example": GIVEN,
    "tf1/contrib/rnn/cell.py:LayerNormBasicLSTMCell.build": NUMBERS,
    "tf1/contrib/rnn/cell.py:LayerNormBasicLSTMCell.call": GIVEN,
    "tf1/control/check.py:assert_near": NODES,
    "tf1/estimator/canned.py:_classes": LAYERS,
    "tf1/estimator/canned.py:_numbers": LAYERS,
    "tf1/feature_column.py:embedding_column": VARIABLES,
    "tf1/image/color.py:adjust_contrast": OWN,
    "tf1/image/color.py:convert_image_dtype": NUMBERS,
    "tf1/image/color.py:per_image_standardization": OWN,
    "tf1/image/color.py:total_variation": OWN,
    "tf1/image/resize.py:pad_to_bounding_box": NUMBERS,
    "tf1/image/resize.py:random_crop": ORDER,
    "tf1/image/resize.py:_of_any": NUMBERS,
    "tf1/sparse.py:_flat_index": OWN,
    "tf1/sparse.py:add": ADDED,
    "tf1/sparse.py:concat": OWN,
    "tf1/sparse.py:reshape": OWN,
    "tf1/sparse.py:sparse_dense_matmul": OWN,
    "tf1/sparse.py:sparse_slice": OWN,
    "tf1/sparse.py:sparse_to_dense": OWN,
    "tf1/sparse.py:sparse_to_indicator": OWN,
    "tf1/contrib/seq2seq/attention.py:bahdanau_score": VARIABLES,
    "tf1/contrib/seq2seq/beam_search_decoder.py:BeamSearchDecoder._attention": GIVEN,
    "tf1/contrib/seq2seq/beam_search_decoder.py:BeamSearchDecoder._scores": FEEDS,
    "tf1/contrib/seq2seq/beam_search_decoder.py:BeamSearchDecoder._search": GIVEN,
    "tf1/contrib/seq2seq/decoder.py:_Body.__call__": GIVEN,
    "tf1/contrib/seq2seq/decoder.py:dynamic_decode": GIVEN,
    "tf1/contrib/seq2seq/gather_tree.py:gather_tree": OWN,
    "tf1/contrib/seq2seq/gather_tree.py:gather_tree_from_array": OWN,
    "tf1/contrib/seq2seq/loss.py:sequence_loss": GIVEN,
    "tf1/contrib/seq2seq/monotonic_attention.py:_alignments": OWN,
    "tf1/contrib/seq2seq/monotonic_attention.py:monotonic_attention": OWN,
    "tf1/control/branch.py:case": NUMBERS,
    "tf1/control/branch.py:switch_case": NUMBERS,
    "tf1/control/loop.py:_Layout.body": NUMBERS,
    "tf1/control/loop.py:_Layout.condition": NUMBERS,
    "tf1/control/loop.py:_While._emit": NUMBERS,
    "tf1/control/loop_extent.py:_Shadow.emit": NUMBERS,
    "tf1/control/tensor_array.py:_inside": NODES,
    "tf1/creation.py:sparse_placeholder": NODES,
    "tf1/data/decode.py:_sparse": NUMBERS,
    "tf1/distributions.py:Uniform._sample": ORDER,
    "tf1/indexing/lookup.py:clipped": NODES,
    "tf1/indexing/order.py:_of_blocks": NUMBERS,
    "tf1/keras/callbacks/monitors.py:Better.__call__": NUMBERS,
    "tf1/keras/engine/reach.py:needs_only": NUMBERS,
    "tf1/keras/fit/steps.py:total_of": NUMBERS,
    "tf1/keras/layers/convolution_transpose.py:ConvolutionTranspose._size": NUMBERS,
    "tf1/keras/optimizers/optimizer.py:Optimizer._rate": VARIABLES,
    "tf1/keras/optimizers/rules.py:Adam.numbers": NODES,
    "tf1/keras/optimizers/rules.py:Nadam.numbers": NODES,
    "tf1/keras/regularizers.py:L1L2.__call__": NODES,
    "tf1/keras/storage/stored_model.py:lines_of": NUMBERS,
    "tf1/nn/ctc.py:_rows": FEEDS,
    "tf1/nn/ctc.py:_possible": FEEDS,
    "tf1/nn/ctc.py:ctc_loss": FEEDS,
    "tf1/nn/ctc.py:ctc_loss_v2": FEEDS,
    "tf1/nn/normalization.py:_unbiased": FEEDS,
    "tf1/nn/normalization.py:batch_normalization": NODES,
    "tf1/nn/raw_rnn.py:_iteration": NODES,
    "tf1/nn/raw_rnn.py:raw_rnn": NODES,
    "tf1/nn/rnn_cell.py:GRUCell.call": NODES,
    "tf1/nn/rnn_cell.py:LSTMCell.call": NODES,
    "tf1/session/tracing.py:_times": NUMBERS,
    "tf1/control/py_func.py:host_function": NUMBERS,
    "tf1/session/tracing.py:RunMetadata.take": NUMBERS,
    "tf1/train/monitored/session_manager.py:SessionManager._restored": NUMBERS,
    "tf1/train/monitored/session_manager.py:SessionManager.wait_for_session": NUMBERS,
    "tf1/summary/operation.py:_scaled": NUMBERS,
    "tf1/data_flow/queue_base.py:QueueBase.from_list": NUMBERS,
    "tf1/train/batched.py:batched": NUMBERS,
    "tf1/train/batched.py:_summarize": OWN,
    "tf1/train/coordinator.py:Coordinator.join": NUMBERS,
    "tf1/train/moving_averages.py:ExponentialMovingAverage._update_debiased": VARIABLES,
    "tf1/variable/counting.py:count_up_to": VARIABLES,
    "tf1/train/moving_averages.py:ExponentialMovingAverage.apply": VARIABLES,
    "tf1/train/monitored/supervisor.py:Supervisor._speed": NUMBERS,
    "tf1/variable/partitioner.py:min_max_variable_partitioner": NUMBERS,
    "tf1/variable/partitioner.py:variable_axis_size_partitioner": NUMBERS,
    "tf1/keras/utils.py:Progbar._line": NUMBERS,
    "tf1/keras/utils.py:Progbar.update": NUMBERS,
    "tf1/variable/store.py:_counts": NUMBERS,
}


def test_front_ends_do_not_compute() -> None:
    found = in_front_ends()
    new = {name: count for name, count in found.items() if name not in LEFT}
    assert not new, f"put these formulas into weft/ops, on graph values: {new}"


def test_what_is_left_is_still_there() -> None:
    gone = sorted(set(LEFT) - set(in_front_ends()))
    assert not gone, f"take these off the list: {gone}"


@pytest.mark.parametrize(
    "body, count",
    [
        ("y = x * 2 + 1\n return y / 3", 3),
        ("return catalogue.exp(x) + catalogue.log(catalogue.abs(x))", 4),
        ("return [exp(v) for v in sort(sqrt(x))]", 3),
        ("return catalogue.sum(catalogue.sort.all(catalogue.sqrt(x))[0])", 3),
        ("n = len(x) + 1\n m = n * 2 - 1\n return m / n * math.sqrt(n)", 0),
        ("for i, d in enumerate(x.shape):\n  s = i * d + 1 - d\n return s", 0),
        ("return x.reshape(2 * k + 1, k - 1) * k", 0),
        ("return (x - k) * (x + k)", 3),
        ("raise ValueError(x + 1 + 2 + 3)", 0),
        ("return f(x, *[(0, 0)] * 3, *[1] * 2, 'a' * 2)", 0),
    ],
)
def test_steps_are_counted(body: str, count: int) -> None:
    text = f"def f(x: Any, k: int) -> Any:\n {body}\n"
    assert own_maths(text) == ({"f": count} if count else {})


def test_methods_and_inner_functions_count() -> None:
    text = "class A:\n def m(self, x):\n  def g(y):\n   return y * y + y - 1\n  return g(x)\n"
    assert own_maths(text) == {"A.m": 3}
