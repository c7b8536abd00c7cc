"""Graphs through the whole compiler, against the interpreter."""

import itertools
import threading

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from strategies import at_most

from weft import config, ops
from weft.errors import (
    ArgumentError,
    FeedError,
    MismatchError,
    OutOfRangeError,
    UninitializedError,
    UserOpError,
)
from weft.ir.graph import Graph
from weft.ops.call import trace
from weft.runtime import engine
from weft.runtime.engine import Function, State
from weft.runtime.oracle import check
from weft.transform.gradient import gradients
from weft.transform.interpreter import evaluate

UNARY = ["exp", "tanh", "relu", "negative", "square", "sigmoid"]
BINARY = ["add", "subtract", "multiply", "maximum"]
REDUCE = ["sum", "max", "min"]


@st.composite
def programs(draw):
    """A graph of elementwise, movement, reduction and product nodes; its feeds; arrays for them."""
    rows, columns = draw(st.integers(1, 9)), draw(st.integers(1, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    graph = Graph()
    with graph.as_default():
        shapes = [(rows, columns), (columns,), (rows, 1)]
        feeds = [ops.placeholder(dtype="float32", shape=s) for s in shapes]
        values = list(feeds)
        for _ in range(draw(st.integers(1, 14))):
            x = draw(st.sampled_from(values))
            kind = draw(st.sampled_from(["unary", "binary", "reduce", "transpose", "product"]))
            rank = len(x.shape)
            if kind == "unary":
                y = getattr(ops, draw(st.sampled_from(UNARY)))(ops.tanh(x))
            elif kind == "binary":
                others = [v for v in values if _broadcasts(v.shape, x.shape)]
                y = getattr(ops, draw(st.sampled_from(BINARY)))(x, draw(st.sampled_from(others)))
            elif kind == "reduce" and rank:
                axes = draw(st.lists(st.integers(0, rank - 1), min_size=1, unique=True))
                keep = draw(st.booleans())
                name = draw(st.sampled_from(REDUCE))
                y = getattr(ops, name)(x, axes=tuple(sorted(axes)), keepdims=keep)
            elif kind == "transpose":
                y = ops.transpose(x, perm=tuple(reversed(range(rank))))
            elif kind == "product" and rank == 2:
                y = ops.tanh(ops.matmul(x, x, transpose_y=True))
            else:
                continue
            values.append(y)
        count = draw(st.integers(1, 4))
        fetches = draw(st.lists(st.sampled_from(values), min_size=count, max_size=count))
    arrays = [rng.standard_normal(v.shape).astype(np.float32) for v in feeds]
    return graph, feeds, fetches, arrays


def _broadcasts(a, b):
    return all(p == q or 1 in (p, q) for p, q in zip(a[::-1], b[::-1], strict=False))


@at_most(25, suppress_health_check=[HealthCheck.too_slow])
@given(programs())
def test_compiled_equals_interpreted_on_any_number_of_threads(program):
    graph, feeds, fetches, arrays = program
    expected = evaluate(graph, fetches, dict(zip(feeds, arrays, strict=True)))
    found = [Function(graph, fetches, feeds=feeds, threads=n)(arrays, State()) for n in (1, 2, 4)]
    for want, got in zip(expected, found[0], strict=True):
        scale = max(1.0, float(np.abs(want).max(initial=0)))
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5 * scale)
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            assert np.asarray(a).tobytes() == np.asarray(b).tobytes()


def variables(**arrays):
    """A graph with these variables, and a state that holds the values."""
    graph, state = Graph(), State()
    with graph.as_default():
        handles = [ops.variable(key=k, dtype=a.dtype, shape=a.shape) for k, a in arrays.items()]
    for key, array in arrays.items():
        state[key] = array
    return graph, state, handles


A, B = np.arange(4, dtype=np.float32), np.full(4, 7, np.float32)


def test_an_update_is_in_place_and_the_fetch_sees_the_old_value():
    graph, state, (v,) = variables(v=A)
    with graph.as_default():
        old = ops.read(v)
        update = ops.assign(v, old * 2.0 + 1.0)
    before = state.memory("v")
    found = Function(graph, [old, update], [update.node])([], state)
    assert np.array_equal(found[0], A) and np.array_equal(found[1], A * 2 + 1)
    assert state.memory("v") is before and np.array_equal(state["v"], A * 2 + 1)


def test_two_variables_swap():
    graph, state, (a, b) = variables(a=A, b=B)
    with graph.as_default():
        x, y = ops.read(a), ops.read(b)
        targets = [ops.assign(a, y).node, ops.assign(b, x).node]
    Function(graph, [], targets)([], state)
    assert np.array_equal(state["a"], B) and np.array_equal(state["b"], A)


def test_one_value_for_two_variables():
    graph, state, (a, b) = variables(a=A, b=B)
    with graph.as_default():
        value = ops.exp(ops.read(a))
        targets = [ops.assign(a, value).node, ops.assign(b, value).node]
    Function(graph, [], targets)([], state)
    assert np.allclose(state["a"], np.exp(A)) and np.array_equal(state["a"], state["b"])


def test_an_update_that_reads_its_variable_elsewhere_is_not_torn():
    graph, state, (v,) = variables(v=np.arange(6, dtype=np.float32))
    with graph.as_default():
        old = ops.read(v)
        update = ops.assign(v, ops.flip(old, axes=(0,)) + old)
    Function(graph, [], [update.node])([], state)
    assert np.array_equal(state["v"], np.full(6, 5, np.float32))


def test_reads_follow_assigns_that_they_depend_on():
    graph, state, (v,) = variables(v=A)
    with graph.as_default():
        first = ops.assign(v, ops.read(v) + 1.0)
        with graph.control_dependencies([first.node]):
            after = ops.read(v)
        before = ops.read(v)
        second = ops.assign(v, ops.read(v, latest=True) * 10.0)
    targets = [first.node, second.node]
    found = Function(graph, [before, after], targets)([], state)
    assert np.array_equal(found[0], A) and np.array_equal(found[1], A + 1)
    assert np.array_equal(state["v"], (A + 1) * 10)


@pytest.mark.parametrize("compute", [lambda x: x @ np.eye(3, dtype=np.float32), lambda x: x + 1])
def test_a_variable_keeps_its_shape_if_what_it_gets_is_computed_in_another(compute):
    graph = Graph()
    with graph.as_default():
        x = ops.placeholder(dtype="float32", shape=(4, 3))
        v = ops.variable(key="v", dtype="float32", shape=(2, 6))
        done = ops.assign(v, ops.reshape(compute(x), shape=(2, 6))).node
        y = ops.read(v) * 1.0
    state = State()
    Function(graph, [], [done], [x])([np.ones((4, 3), np.float32)], state)
    assert state["v"].shape == (2, 6)
    assert np.array_equal(Function(graph, [y], feeds=[])([], state)[0], state["v"])
    assert state["v"].any()


def test_a_feed_is_assigned():
    graph, state, (v,) = variables(v=A)
    with graph.as_default():
        x = ops.placeholder(dtype="float32", shape=(4,))
        update = ops.assign(v, x)
    Function(graph, [], [update.node], [x])([B], state)
    assert np.array_equal(state["v"], B)


def test_a_variable_without_a_value_is_named():
    graph, _, (v,) = variables(v=A)
    with graph.as_default():
        y = ops.read(v) + 1.0
    with pytest.raises(UninitializedError, match=r"variable 'v' .*test_engine.py:\d+"):
        Function(graph, [y])([], State())


def test_a_counter_counts_runs_of_its_state():
    graph = Graph()
    with graph.as_default():
        count = ops.counter(key="c")
    function, state = Function(graph, [count]), State()
    assert [int(function([], state)[0]) for _ in range(3)] == [0, 1, 2]
    assert int(function([], State())[0]) == 0


def test_any_value_can_be_fed_and_intermediates_are_cut():
    graph = Graph()
    with graph.as_default():
        x = ops.placeholder(dtype="float32", shape=(4,))
        y = ops.exp(x)
        z = y * 2.0
    assert np.array_equal(Function(graph, [z], feeds=[y])([A], State())[0], A * 2)
    with pytest.raises(FeedError, match="must be fed"):
        Function(graph, [z])([], State())


@pytest.mark.parametrize(
    ("array", "message"),
    [(np.zeros(3, np.float32), r"expected shape \(4,\), got \(3,\)"),
     (np.zeros(4), "expected float32, got float64")],
)  # fmt: skip
def test_bad_feeds_name_the_users_line(array, message):
    graph = Graph()
    with graph.as_default():
        x = ops.placeholder(dtype="float32", shape=(4,))
        y = x * 2.0
    function = Function(graph, [y], feeds=[x])
    with pytest.raises(FeedError, match=message + r".*test_engine.py:\d+"):
        function([array], State())
    assert np.array_equal(function([A], State())[0], A * 2)


def test_nan_feeds_raise_when_verifying():
    graph = Graph()
    with graph.as_default():
        x = ops.placeholder(dtype="float32", shape=(4,))
        y = x * 2.0
    with config.override(verify=True):
        function = Function(graph, [y], feeds=[x])
    with pytest.raises(FeedError, match=r"got NaN at \[2\]"):
        function([np.array([1, 2, np.nan, 3], np.float32)], State())


def test_shapes_may_depend_on_the_values_of_feeds():
    graph = Graph()
    with graph.as_default():
        n = ops.placeholder(dtype="int32", shape=())
        y = ops.broadcast_to(ops.constant(3.0), shape=ops.stack(n, 2))
    function = Function(graph, [y], feeds=[n])
    for count in (1, 4, 1):
        assert function([np.array(count, np.int32)], State())[0].shape == (count, 2)


def test_feeds_of_any_layout():
    graph = Graph()
    with graph.as_default():
        x = ops.placeholder(dtype="float32", shape=(None, None))
        y = ops.exp(x)
    function = Function(graph, [y], feeds=[x])
    wide = np.random.default_rng(0).random((6, 8), np.float32)
    for array in (wide, wide.T, wide[::2, ::3], wide[::-1], np.asfortranarray(wide)):
        np.testing.assert_allclose(function([array], State())[0], np.exp(array), rtol=1e-6)


def host(function, x):
    return ops.host_call(x, function=function, dtypes=("float32",), shapes=((4,),))


def test_the_reference_does_not_repeat_calls_of_python_in_a_branch():
    called = []

    def function(x):
        called.append(x)
        return x * 3

    graph = Graph()
    with graph.as_default():
        x = ops.placeholder(dtype="float32", shape=(4,))
        branches = [trace(f, [x.type]) for f in (ops.exp, lambda x: host(function, x))]
        y = ops.switch(ops.constant(np.int32(1)), x, branches=tuple(branches))
    with config.override(reference=True):
        step = Function(graph, [y], feeds=[x])
    np.testing.assert_array_equal(step([A], State())[0], A * 3)
    assert len(called) == 2  # of the compared program, and of the step itself


def test_python_runs_inside_a_step_and_its_errors_change_nothing():
    graph, state, (v,) = variables(v=A)
    fail = [False]

    def function(x):
        if fail[0]:
            raise ValueError("no")
        return x * 3

    with graph.as_default():
        y = ops.exp(ops.negative(host(function, ops.read(v))))
        update = ops.assign(v, ops.read(v) + 1.0)
    step = Function(graph, [y], [update.node])
    np.testing.assert_allclose(step([], state)[0], np.exp(-3 * A), rtol=1e-6)
    fail[0] = True
    with pytest.raises(UserOpError, match="ValueError: no") as caught:
        step([], state)
    assert isinstance(caught.value.__cause__, ValueError)
    assert np.array_equal(state["v"], A + 1)
    fail[0] = False
    step([], state)
    assert np.array_equal(state["v"], A + 2)


def test_threads_take_turns_also_in_different_programs():
    graph, state, (v,) = variables(v=np.zeros(1000))
    with graph.as_default():
        update = ops.assign(v, ops.read(v) + 1.0)
        total = ops.sum(update)
    steps = [Function(graph, fetches, [update.node]) for fetches in ([], [total])]
    steps[0]([], state)
    workers = [
        threading.Thread(target=lambda step: [step([], state) for _ in range(200)], args=(step,))
        for step in steps * 2
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert (state["v"] == 801).all()


def test_the_reference_mode_compares_and_can_fail():
    graph, state, (v,) = variables(v=A)
    with graph.as_default():
        update = ops.assign(v, ops.tanh(ops.read(v)) * 2.0)
    with config.override(reference=True):
        step = Function(graph, [update], [update.node])
    np.testing.assert_allclose(step([], state)[0], np.tanh(A) * 2, rtol=1e-6)
    with pytest.raises(MismatchError, match=r"multiply: .* first at \(2,\): expected 2.0, got 2.5"):
        check(update.node.inputs[1], A, A + np.array([0, 0, 0.5, 0], np.float32), [A])


def test_a_step_is_explained_stage_by_stage():
    graph, state, (v,) = variables(v=A)
    with graph.as_default():
        y = ops.sum(ops.exp(ops.read(v) * 1.0))
    explanation = Function(graph, [y]).explain([], state)
    after = {stage.name: stage.graph for stage in explanation.stages}
    assert "multiply" in after["specialized"] and "multiply" not in after["simplify"]
    (kernel,) = explanation.kernels
    assert "define" in explanation.llvm_ir(kernel) and "ret" in explanation.assembly(kernel)
    text = str(explanation)
    assert "# fold" in text and "no change" in text and kernel in text and "arena" in text
    with pytest.raises(ArgumentError, match=rf"expected a kernel among {kernel}, got 'none'"):
        explanation.llvm_ir("none")


def test_a_chain_of_5000_nodes_with_gradient():
    graph, state, (v,) = variables(v=A)
    with graph.as_default():
        x = ops.read(v)
        y = x
        for _ in range(5_000):
            y = y * 1.5 if y.node.op != "multiply" else y / 1.5
        (g,) = gradients([y], [x])
    np.testing.assert_allclose(Function(graph, [g])([], state)[0], np.ones(4), rtol=1e-2)


def test_training_allocates_nothing_lasting():
    graph, state, (v,) = variables(v=np.ones((64, 64), np.float32))
    with graph.as_default():
        w = ops.read(v)
        loss = ops.sum(ops.square(ops.matmul(w, w)))
        (g,) = gradients([loss], [w])
        update = ops.assign(v, w - g * 1e-6)
    step = Function(graph, [loss], [update.node])
    losses = [float(step([], state)[0]) for _ in range(50)]
    assert all(b < a for a, b in itertools.pairwise(losses))


def test_subnormal_numbers_are_kept_by_a_step_and_by_python_called_from_it():
    graph, tiny = Graph(), np.full(4, 1e-39, np.float32)
    seen = []

    def function(x):
        seen.append(x * np.float32(2))
        return x

    with graph.as_default():
        x = ops.placeholder(dtype="float32", shape=(4,))
        y = x * 2.0
        called = host(function, x)
    found = Function(graph, [y, called], feeds=[x])([tiny], State())
    assert (found[0] == tiny * 2).all()
    assert (seen[0] == tiny * 2).all() and (tiny * 2 != 0).all()


def test_rows_are_added_in_place_and_a_bad_index_changes_nothing():
    graph, state, (v,) = variables(v=np.zeros((5000, 32), np.float32))
    with graph.as_default():
        rows = ops.placeholder(dtype="int32", shape=(None,))
        more = ops.placeholder(dtype="float32", shape=(None, 32))
        update = ops.assign(v, ops.scatter_add(ops.read(v), rows, more))
    step = Function(graph, [], [update.node], [rows, more])
    ones, before = np.ones((3, 32), np.float32), state.memory("v")
    step([np.array([7, 4999, 7], np.int32), ones], state)
    assert state.memory("v") is before
    assert state["v"].sum() == 96 and (state["v"][7] == 2).all()
    program = step.program([np.array([7, 4999, 7], np.int32), ones], state)
    assert program.blueprint.arena.total < 1000  # no copy of the table
    with pytest.raises(OutOfRangeError, match="5000"):
        step([np.array([7, 5000, 7], np.int32), ones], state)
    assert state["v"].sum() == 96


def test_rows_that_were_looked_up_are_checked_once():
    graph, state, (v,) = variables(v=np.ones((500, 32), np.float32))
    with graph.as_default():
        rows = ops.placeholder(dtype="int32", shape=(3,))
        more = ops.exp(ops.gather(ops.read(v), rows))
        update = ops.assign(v, ops.scatter_add(ops.read(v), rows, more))
    step = Function(graph, [], [update.node], [rows])
    good = np.array([7, 499, 7], np.int32)
    step([good], state)
    assert np.allclose(state["v"][7], 1 + 2 * np.e) and (state["v"][8] == 1).all()
    assert sum([call.check for call in step.program([good], state).program.calls]) == 1
    before = state["v"].copy()
    with pytest.raises(OutOfRangeError, match="500"):
        step([np.array([7, 500, 7], np.int32)], state)
    assert (state["v"] == before).all()


def test_a_target_without_effect_is_computed_and_checked():
    graph = Graph()
    with graph.as_default():
        x = ops.placeholder(dtype="float32", shape=(4,))
        rows = ops.placeholder(dtype="int32", shape=(1,))
        y = ops.gather(ops.exp(x), rows)
    step = Function(graph, [], [y.node], [x, rows])
    assert step([A, np.array([3], np.int32)], State()) == []
    with pytest.raises(OutOfRangeError, match="got 4"):
        step([A, np.array([4], np.int32)], State())


def test_the_least_recently_used_program_is_evicted(monkeypatch):
    monkeypatch.setattr(engine, "MOST_PROGRAMS", 2)
    graph = Graph()
    with graph.as_default():
        x = ops.placeholder(dtype="float32", shape=(None,))
        function, state = Function(graph, [ops.tanh(x)], feeds=[x]), State()
    first, second = [function.program([np.zeros(n, np.float32)], state) for n in (1, 2)]
    assert function.program([np.zeros(1, np.float32)], state) is first
    function.program([np.zeros(3, np.float32)], state)
    assert function.program([np.zeros(1, np.float32)], state) is first
    assert function.program([np.zeros(2, np.float32)], state) is not second
    np.testing.assert_array_equal(function([np.zeros(2, np.float32)], state)[0], np.zeros(2))
