"""Prepared interpretations equal the reference interpreter, keep feeds, and name errors."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from drawn_graph import Drawing

from weft import ops
from weft.errors import FeedError, GraphError, OutOfMemoryError, OutOfRangeError
from weft.ir.dtype import as_dtype
from weft.ir.graph import Graph
from weft.ops.declaration import REGISTRY
from weft.ops.declaration.numeric import HALVES
from weft.transform import interpretation
from weft.transform.gradient import dense, gradients
from weft.transform.interpretation import Interpretation
from weft.transform.interpreter import evaluate


@pytest.mark.parametrize("seed", range(300, 360))
def test_drawn_graphs_and_their_gradients_equal_the_oracle(seed: int) -> None:
    drawing = Drawing(seed)
    ys = drawing.grow(3 + seed % 12)
    with drawing.graph.as_default():
        ys += [dense(g) for g in gradients(ys, list(drawing.feeds)) if g is not None]
    given = [array.copy() for array in drawing.feeds.values()]
    run = Interpretation(drawing.graph, ys, list(drawing.feeds))
    wanted = evaluate(drawing.graph, ys, drawing.feeds)
    for _ in range(2):
        found = run(list(drawing.feeds.values()))
        for y, want in zip(found, wanted, strict=True):
            scale = np.abs(want[np.isfinite(want)]).max(initial=1.0)
            np.testing.assert_allclose(y, want, rtol=0, atol=2e-4 * scale)
            y.fill(7)
    for before, after in zip(given, drawing.feeds.values(), strict=True):
        np.testing.assert_array_equal(before, after)


def test_memory_is_reused_where_nothing_else_sees_it() -> None:
    """A chain of ufuncs needs one array; a view keeps its base alive."""
    with Graph().as_default() as graph:
        x = ops.placeholder(dtype="float32", shape=(4, 2))
        y = x + 1.0
        turned = ops.transpose(y, perm=(1, 0))
        z = ops.exp(ops.negative(ops.square(y)))
    array = np.arange(8, dtype=np.float32).reshape(4, 2)
    run = Interpretation(graph, [turned, z], [x])
    t, e = run([array])
    np.testing.assert_array_equal(t, (array + 1).T)
    np.testing.assert_allclose(e, np.exp(-((array + 1) ** 2)), rtol=1e-6)
    assert t.flags.c_contiguous and t.base is None and e.base is None


def test_results_are_nobody_elses_memory() -> None:
    with Graph().as_default() as graph:
        x = ops.placeholder(dtype="float32", shape=(3,))
        same = ops.identity(x)
        number = ops.constant(np.ones(2, np.float32))
        y = x * 2.0
    array = np.zeros(3, np.float32)
    found = Interpretation(graph, [x, same, number, y, y], [x])([array])
    for result in found:
        result += 5
    np.testing.assert_array_equal(array, 0)
    np.testing.assert_array_equal(found[3], 5)
    np.testing.assert_array_equal(number.node.attrs["value"].array, 1)


def test_values_inside_may_be_fed_and_several_outputs_used() -> None:
    with Graph().as_default() as graph:
        x = ops.placeholder(dtype="float32", shape=(6,))
        middle = ops.sqrt(x)
        first, second = ops.split.all(middle, sizes=(2, 4), axis=0)
        z = ops.sum(second) + ops.sum(first)
    assert Interpretation(graph, [z], [middle])([np.ones(6, np.float32)]) == [6]


def test_computed_attributes_and_dimensions_of_the_run() -> None:
    with Graph().as_default() as graph:
        x = ops.placeholder(dtype="float32", shape=(None, 3))
        y = ops.reshape(x, shape=ops.shape_of(ops.transpose(x, perm=(1, 0))))
    run = Interpretation(graph, [y], [x])
    for rows in (2, 5):
        (found,) = run([np.zeros((rows, 3), np.float32)])
        assert found.shape == (3, rows)


def test_errors_name_the_node_and_the_line() -> None:
    with Graph().as_default() as graph:
        x = ops.placeholder(dtype="float32", shape=(4, 2), name="table")
        i = ops.placeholder(dtype="int32", shape=(1,))
        y = ops.gather(x, i, name="look")
    run = Interpretation(graph, [y], [x, i])
    table = np.zeros((4, 2), np.float32)
    text = r"gather: indices\[0\]: .* got 9 \(node look, created at test_interpretation.py:\d+\)"
    with pytest.raises(OutOfRangeError, match=text):
        run([table, np.array([9], np.int32)])
    with pytest.raises(FeedError, match=r"table:0: expected a feed of float32\[4,2\], got float64"):
        run([table.astype(np.float64), np.array([1], np.int32)])
    with pytest.raises(FeedError, match="placeholder: expected a feed of table"):
        Interpretation(graph, [y], [i])


@pytest.mark.parametrize(("raised", "expected"), [
    (MemoryError(), OutOfMemoryError), (RecursionError(), RecursionError),
    (KeyboardInterrupt(), KeyboardInterrupt), (ValueError(), GraphError),
])  # fmt: skip
def test_what_a_reference_raises_arrives_as_what_it_is(monkeypatch, raised, expected):
    def fail(x):
        raise raised

    op = REGISTRY["sinh"]
    for name in ("reference", "fast"):
        monkeypatch.setitem(op.__dict__, name, fail)
    monkeypatch.setattr(interpretation, "_manners", {})
    with Graph().as_default() as graph:
        x = ops.placeholder(dtype="float32", shape=(2,))
        y = ops.sinh(x, name="look")
    feed = np.ones(2, np.float32)
    prepared = Interpretation(graph, [y], [x])
    for run in (lambda: prepared([feed]), lambda: evaluate(graph, [y], {x: feed})):
        with pytest.raises(expected) as caught:
            run()
        if expected is OutOfMemoryError:
            assert "sinh: not enough memory: an allocation failed (node look" in str(caught.value)


def test_effects_raise() -> None:
    with Graph().as_default() as graph:
        w: Any = ops.variable(key="w", dtype="float32", shape=(3,), name="w")
        y = ops.read(w)
    with pytest.raises(GraphError, match="expected a graph without effects: "):
        Interpretation(graph, [y], [])


@pytest.mark.parametrize("name", [name for name, op in REGISTRY.items() if op.fast is not None])
def test_fast_forms_equal_the_references(name: str) -> None:
    op = REGISTRY[name]
    for case in op.cases():
        kinds = {as_dtype(x.dtype) for x in case.inputs}
        if kinds & {*HALVES}:
            continue
        with Graph().as_default() as graph:
            xs = [ops.placeholder(dtype=x.dtype, shape=x.shape) for x in case.inputs]
            ys = op.all(*xs, **case.attrs)
        found = Interpretation(graph, ys, xs)(case.inputs)
        wanted = evaluate(graph, ys, dict(zip(xs, case.inputs, strict=True)))
        for y, want in zip(found, wanted, strict=True):
            np.testing.assert_allclose(y, want, rtol=2 * case.rtol, atol=2 * case.atol)


MAPPED = """
import ctypes, sys, numpy as np
from weft import ops
from weft.ir.graph import Graph
from weft.transform.interpretation import Interpretation

n = int(sys.argv[1])
graph = Graph()
with graph.as_default():
    x = ops.placeholder(dtype="float32", shape=(n,))
    y = ops.tanh(x)
Interpretation(graph, [y], [x])([np.zeros(n, np.float32)])
large = np.empty(24 << 20, np.uint8)
flags = ctypes.c_size_t.from_address(large.ctypes.data - 8).value  # of glibc's header before it
print("mapped" if flags & 2 else "kept")
"""


@pytest.mark.parametrize(
    ("keep", "size", "found"),
    [("1", 1000, "mapped"), ("1", 100_000, "kept"), ("0", 100_000, "mapped")],
)
def test_the_c_library_is_reported_to_keep_memory_for_large_arrays_only(
    keep: str, size: int, found: str
) -> None:
    environment = {**os.environ, "WEFT_KEEP_FREED": keep}
    command = [sys.executable, "-c", MAPPED, str(size)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == found
