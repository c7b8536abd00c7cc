"""Every algebraic rule: a case where it fires, and one where it must not."""

import numpy as np
import pytest

from weft import ops
from weft.ir.dtype import as_dtype
from weft.ir.graph import Graph
from weft.ops.indexing.lagged_table import PERIOD, traced_rule
from weft.passes.cse import cse
from weft.passes.fold import fold
from weft.passes.prune import prune
from weft.passes.simplify import RULES, simplify
from weft.passes.step import Step
from weft.transform.interpreter import evaluate


def step_of(build, *arrays):
    """A step on feeds like `arrays`, and its feeds by value."""
    graph = Graph()
    with graph.as_default():
        feeds = [ops.placeholder(dtype=a.dtype, shape=a.shape) for a in arrays]
        graph.outputs = (build(*feeds),)
    return Step(graph, tuple(v.node.name for v in feeds), ())


def ops_of(step):
    return [n.op for n in prune(step).graph.nodes if n.op not in ("placeholder", "constant")]


def value_of(step, arrays):
    feeds = {step.graph.find(n).outputs[0]: a for n, a in zip(step.feeds, arrays, strict=True)}
    return evaluate(step.graph, step.graph.outputs, feeds)[0]


M = np.arange(6, dtype=np.float32).reshape(2, 3)
S = np.arange(9, dtype=np.float32).reshape(3, 3)
ONES = np.ones((2, 1, 3), np.float32)
B = np.array([True, False])


def padded(x, columns):
    """The sum of some columns of exp(x), each padded with zeros to its position."""
    y = ops.exp(x)
    parts = [ops.slice(y, begin=(0, i), end=(2, i + 1)) for i in columns]
    ends = [(2, i + 1) for i in columns]
    pairs = zip(parts, columns, ends, strict=True)
    return ops.add_n(*[ops.unslice(p, shape=(2, 3), begin=(0, i), end=e) for p, i, e in pairs])


RULE = traced_rule(lambda p, g, a: (p * a - g,), 0, 1)


def whole(x):
    """A table of which the first row has missed a step, as it should be."""
    history = ops.constant(np.full((PERIOD + 1, 1), 0.5, np.float32))
    rows, last = ops.iota(shape=(2,)), ops.constant(np.array([1, 2], np.int32))
    return ops.lag_gather(x, rows, ops.constant(np.int32(2)), last, history, rule=RULE)


def merged(x, axis):
    """Two arrays joined whose last two axes are made one."""
    return ops.concatenate(*[ops.reshape(y, shape=(2, 3)) for y in (x, ops.exp(x))], axis=axis)


CASES = {
    # op: (fires, expected ops, does not fire, arrays of both)
    "identity": (lambda x: ops.identity(x), [], lambda x: ops.exp(x), [M]),
    "stop_gradient": (lambda x: ops.stop_gradient(x), [], lambda x: ops.exp(x), [M]),
    "cast": (
        lambda x: ops.cast(x, dtype="float32"), [], lambda x: ops.cast(x, dtype="int32"), [M],
    ),
    "reshape": (
        lambda x: ops.reshape(ops.reshape(x, shape=(6,)), shape=(2, 3)), [],
        lambda x: ops.reshape(x, shape=(3, 2)), [M],
    ),
    "broadcast_to": (
        lambda x: ops.broadcast_to(x, shape=(2, 3)), [],
        lambda x: ops.broadcast_to(x, shape=(4, 2, 3)), [M],
    ),
    "transpose": (
        lambda x: ops.transpose(ops.transpose(x, perm=(1, 0)), perm=(1, 0)), [],
        lambda x: ops.transpose(x, perm=(1, 0)), [M],
    ),
    "slice": (
        lambda x: ops.slice(x, begin=(0, 0), end=(2, 3)), [],
        lambda x: ops.slice(x, begin=(1, 0), end=(-9, 3), strides=(-1, 1)), [M],
    ),
    "concatenate": (
        lambda x: merged(x, 1), ["exp", "concatenate", "reshape"], lambda x: merged(x, 0), [ONES],
    ),
    "gather": (
        lambda x: ops.gather(whole(x), ops.constant(np.array([1, 0, 0]))), ["lag_gather"],
        lambda x: ops.gather(whole(x), ops.constant(np.array([1, 0, 0])), axis=1), [M],
    ),
    "negative": (lambda x: ops.negative(-x), [], lambda x: -x, [M]),
    "logical_not": (
        lambda x: ops.logical_not(ops.logical_not(x)), [], lambda x: ops.logical_not(x), [B],
    ),
    "select": (
        lambda x: ops.select(ops.constant(np.array(True)), x, ops.exp(x)), [],
        lambda x: ops.select(ops.greater(x, 0.0), x, ops.exp(x)), [M],
    ),
    "add": (lambda x: x + np.float32(-0.0), [], lambda x: x + 0.0, [-M]),
    "add_n": (
        lambda x: padded(x, (2, 0, 1)),
        ["exp"],
        lambda x: padded(x, (2, 0, 0)),
        [M],
    ),
    "subtract": (lambda x: x - 0.0, [], lambda x: 0.0 - x, [M]),
    "multiply": (lambda x: 1.0 * x, [], lambda x: x * 0.0, [M]),
    "divide": (lambda x: x / 1.0, [], lambda x: 1.0 / x, [M + 1]),
    "power": (lambda x: ops.power(x, 2.0), ["square"], lambda x: ops.power(x, 3.0), [M]),
    "sum": (
        lambda x: ops.sum(x, axes=(1,), keepdims=False), ["reshape"],
        lambda x: ops.sum(x, axes=(0,), keepdims=False), [ONES],
    ),
    "prod": (
        lambda x: ops.prod(x, axes=(1,)), ["reshape"], lambda x: ops.prod(x, axes=(0,)), [ONES],
    ),
    "max": (
        lambda x: ops.max(x, axes=(1,)), ["reshape"], lambda x: ops.max(x, axes=(0,)), [ONES],
    ),
    "min": (
        lambda x: ops.min(x, axes=(1,)), ["reshape"], lambda x: ops.min(x, axes=(0,)), [ONES],
    ),
    "any": (
        lambda x: ops.any(ops.reshape(x, shape=(1, 2)), axes=(0,)), [],
        lambda x: ops.any(x, axes=(0,)), [B],
    ),
    "all": (
        lambda x: ops.all(ops.reshape(x, shape=(1, 2)), axes=(0,)), [],
        lambda x: ops.all(x, axes=(0,)), [B],
    ),
    "matmul": (
        lambda x: ops.matmul(ops.transpose(x, perm=(1, 0)), x), ["matmul"],
        lambda x: ops.matmul(x, ops.exp(x)), [S],
    ),
}  # fmt: skip


def test_every_rule_has_its_cases():
    assert set(CASES) == set(RULES)


@pytest.mark.parametrize("name", CASES)
def test_a_rule_fires_and_keeps_the_value(name):
    fires, expected, _, arrays = CASES[name]
    before = step_of(fires, *arrays)
    after = simplify(before)
    assert ops_of(after) == expected
    assert value_of(after, arrays).tobytes() == value_of(before, arrays).tobytes()


@pytest.mark.parametrize("name", CASES)
def test_a_rule_leaves_others_alone(name):
    _, _, other, arrays = CASES[name]
    before = step_of(other, *arrays)
    assert ops_of(simplify(before)) == ops_of(before) != []


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
def test_a_long_sum_is_taken_in_groups_from_the_left(dtype):
    terms = [np.asarray(M * 1.1**i + i, as_dtype(dtype).numpy) for i in range(40)]
    before = step_of(lambda *xs: ops.add_n(*xs), *terms)
    after = simplify(before)
    sums = [n for n in prune(after).graph.nodes if n.op == "add_n"]
    assert [len(n.inputs) for n in sums] == [16, 16, 10]
    assert value_of(after, terms).tobytes() == value_of(before, terms).tobytes()


def test_many_parts_are_joined_a_few_at_a_time():
    parts = [M + i for i in range(70)]
    before = step_of(lambda *xs: ops.concatenate(*xs, axis=1), *parts)
    after = simplify(before)
    joins = [n for n in prune(after).graph.nodes if n.op == "concatenate"]
    assert [len(n.inputs) for n in joins] == [32, 32, 6, 3]
    assert value_of(after, parts).tobytes() == value_of(before, parts).tobytes()


def test_transposes_that_move_only_units_become_reshapes():
    step = simplify(step_of(lambda x: ops.transpose(x, perm=(1, 0, 2)), ONES))
    assert ops_of(step) == ["reshape"]


def test_a_transpose_inside_a_batch_is_not_a_matmul_flag():
    x = np.zeros((3, 3, 3), np.float32)
    step = step_of(lambda x: ops.matmul(ops.transpose(x, perm=(1, 0, 2)), x), x)
    assert ops_of(simplify(step)) == ["transpose", "matmul"]


@pytest.mark.parametrize(
    "ranges", [((0, 2), (0, 3)), ((1, 3), (0, 1)), ((0, 1), (1, 2)), ((1, 2), (2, 3))]
)
def test_slices_that_are_not_the_whole_in_order_stay(ranges):
    step = step_of(lambda x: ops.concatenate(*[x[:, a:b] for a, b in ranges], axis=1), M)
    assert ops_of(simplify(step))[-1] == "concatenate"


@pytest.mark.parametrize(
    ("begin", "end", "split", "expected"),
    [
        (4, 8, (2, 2, 2), ["reshape", "slice"]),
        (0, 6, (2, 3, 2), ["reshape", "slice"]),
        (3, 7, (2, 2, 2), ["slice", "reshape"]),  # begins inside a part
        (4, 8, (4, 2), ["slice", "reshape"]),  # other axes are not as they were
    ],
)
def test_a_part_of_the_last_axis_is_cut_after_a_split(begin, end, split, expected):
    x = np.arange(20, dtype=np.float32).reshape(2, 10)

    def build(x):
        return ops.reshape(ops.slice(x, begin=(0, begin), end=(2, end)), shape=split)

    before = step_of(build, x)
    after = simplify(before)
    assert ops_of(after) == expected
    assert value_of(after, [x]).tobytes() == value_of(before, [x]).tobytes()


def test_fold_moves_constants_and_computes_integers_but_leaves_floats_to_kernels():
    step = fold(
        step_of(lambda x: x + ops.reshape(ops.constant([1.0, 2.0, 3.0]), shape=(3, 1)), M.T)
    )
    assert ops_of(step) == ["add"]
    step = fold(step_of(lambda x: x + ops.cast(ops.constant(1) + 2, dtype="float32"), M))
    assert ops_of(step) == ["cast", "add"]
    step = fold(step_of(lambda x: x + ops.exp(ops.constant(1.0)), M))
    assert ops_of(step) == ["exp", "add"]


def test_fold_does_not_make_large_constants():
    step = step_of(lambda x: ops.broadcast_to(ops.constant(1.0), shape=(1000, 1000)), M)
    assert ops_of(fold(step)) == ["broadcast_to"]


def test_cse_merges_equal_nodes_only():
    merged = cse(step_of(lambda x: ops.exp(x) + ops.exp(x), M))
    assert ops_of(merged) == ["exp", "add"]
    different = cse(step_of(lambda x: ops.exp(x) + ops.exp(x * 2.0), M))
    assert ops_of(different).count("exp") == 2


def test_prune_keeps_feeds():
    def build(x, y):
        ops.exp(y)
        return ops.tanh(x)

    step = prune(step_of(build, M, M))
    assert [n.op for n in step.graph.nodes] == ["placeholder", "placeholder", "tanh"]
