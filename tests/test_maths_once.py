"""Formulas stand in `weft/ops` alone: front ends give them names, defaults and errors."""

import pytest

from tools.own_maths import in_front_ends, own_maths

NUMBERS = "works on plain numbers and sizes, which the text does not show"
ORDER = "has decisions between its steps (values that are looked at, draws, loops of factors)"
ADDED = "adds up what other functions give, each in its own type"
NODES = "makes the nodes that programs look up by name"
FEEDS = "depends on what is known of feeds, which graphs alone do not tell"
OWN = "TensorFlow 1's own definition, of use to no other front end"

# What computes by itself nevertheless, and why
LEFT = {
    "eager/functions/creation/arange.py:arange": NUMBERS,
    "eager/functions/creation/arange.py:range": NUMBERS,
    "eager/functions/elementwise/unary.py:round": ADDED,
    "eager/functions/indexing/gather.py:scatter_reduce": ORDER,
    "eager/functions/linalg/low_rank.py:svd_lowrank": ORDER,
    "eager/functions/linalg/product.py:addr": ADDED,
    "eager/functions/linalg/solve.py:lstsq": ORDER,
    "eager/functions/linalg/solve.py:matrix_rank": ADDED,
    "eager/functions/linalg/solve.py:pinv": ADDED,
    "eager/functions/random/inplace.py:Methods.random_": NUMBERS,
    "eager/functions/reduction/norm.py:cond": ORDER,
    "func/control/loop.py:fori_loop": NUMBERS,
    "linalg.py:_cheapest": NUMBERS,
    "nn/functional/convolution.py:_pads": NUMBERS,
    "nn/functional/fractional.py:fractional_max_pool": NUMBERS,
    "nn/functional/padding.py:_check": NUMBERS,
    "nn/functional/pooling.py:max_unpool": NUMBERS,
    "nn/functional/vision.py:_outputs": NUMBERS,
    "nn/functional/vision.py:interpolate": NUMBERS,
    "numpy/creation.py:_between": NUMBERS,
    "numpy/creation.py:arange": NUMBERS,
    "numpy/random.py:uniform": ADDED,
    "numpy/statistical.py:ptp": ADDED,
    "scipy/stats/t.py:cdf": "calls SciPy's functions, which refuse gradients that they lack",
    "sparse.py:SparseCSR.to_dense": ADDED,
    "sparse.py:sampled_addmm": ADDED,
    "tf1/creation.py:linspace": OWN,
    "tf1/creation.py:sequence_mask": NODES,
    "tf1/creation.py:sparse_placeholder": NODES,
    "tf1/elementwise/arithmetic.py:_power": OWN,
    "tf1/indexing/lookup.py:embedding_lookup": NODES,
    "tf1/indexing/lookup.py:in_top_k": OWN,
    "tf1/indexing/order.py:confusion_matrix": NODES,
    "tf1/indexing/order.py:invert_permutation": OWN,
    "tf1/indexing/segment_reduction.py:_of_any": OWN,
    "tf1/layers.py:_statistics": NODES,
    "tf1/losses.py:_reduced": OWN,
    "tf1/nn/ctc.py:_rows": FEEDS,
    "tf1/nn/ctc.py:ctc_loss": FEEDS,
    "tf1/nn/normalization.py:_unbiased": FEEDS,
    "tf1/nn/normalization.py:batch_normalization": NODES,
    "tf1/nn/raw_rnn.py:_iteration": NODES,
    "tf1/nn/raw_rnn.py:raw_rnn": NODES,
    "tf1/nn/rnn.py:reverse_sequence": NODES,
    "tf1/nn/rnn_cell.py:GRUCell.build": NUMBERS,
    "tf1/nn/rnn_cell.py:GRUCell.call": NODES,
    "tf1/nn/rnn_cell.py:LSTMCell.build": NUMBERS,
    "tf1/nn/rnn_cell.py:LSTMCell.call": NODES,
    "tf1/random/distribution.py:random_shuffle": NODES,
    "tf1/reduction.py:_mean": OWN,
    "tf1/reduction.py:_norm": "its gradient at 0 is NaN, as in TensorFlow; that of others is 0",
    "tf1/shape/arrangement.py:roll": NUMBERS,
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
