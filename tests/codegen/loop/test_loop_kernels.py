"""Guarantees of the loop generator about kernels: sharing, memory, loop structure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from families import TARGETS, machine
from harness import OutOfBoundsError, check_group, execute, group_of

from weft import config, ops
from weft.codegen.loop.schedule import loops
from weft.errors import CompileError
from weft.ir import dtype as types
from weft.ir.graph import Graph
from weft.ir.node import Value
from weft.ops.declaration import catalogue
from weft.passes.group import Group
from weft.passes.launch import Kernel, Launch, Scratch


def lowered(
    build: Any, *shapes: tuple[int, ...], target: str = "native"
) -> tuple[Group, tuple[Launch, ...], list[Value]]:
    graph = Graph()
    with graph.as_default():
        xs = [ops.placeholder(dtype=types.float32, shape=s) for s in shapes]
        ys = build(*xs)
    group = group_of(graph, list(ys) if isinstance(ys, tuple) else [ys])
    return group, loops(group, machine(target)), xs


def test_one_kernel_for_all_lengths() -> None:
    kernels = {lowered(lambda x, y: x * y + 1.0, s, s)[1][0].kernel.ir for s in ((3,), (5, 7, 9))}
    assert len(kernels) == 1


def test_empty_outputs_give_no_launch() -> None:
    assert lowered(lambda x: x + 1.0, (0, 4))[1] == ()
    assert lowered(lambda x: ops.sum(x, axes=(0,)), (4, 0))[1] == ()


def test_in_place_pairs() -> None:
    _, (launch,), (w, g) = lowered(lambda w, g: (w - g * 0.1, g * 2.0), (40,), (40,))
    pairs = {(launch.args[a], launch.args[b]) for a, b in launch.inplace}
    outputs = [launch.args[n] for n in launch.writes]
    assert pairs == {(out, x) for out in outputs for x in (w, g)}


def test_no_in_place_where_a_row_is_read_again() -> None:
    def build(x: Any) -> Any:
        twice = x * 2.0
        return twice, x - ops.sum(x, axes=(1,), keepdims=True)

    _, (launch,), (x,) = lowered(build, (30, 700))
    first, second = launch.writes
    assert (second, launch.args.index(x)) in launch.inplace
    assert all(pair[0] != first for pair in launch.inplace)


def test_no_in_place_through_a_broadcast() -> None:
    _, (launch,), _ = lowered(lambda x, y: x + y, (30, 30), (30, 1))
    assert [launch.args[b] for _, b in launch.inplace] == [launch.args[0]]


def test_chunks_do_not_depend_on_threads() -> None:
    counts = set()
    for threads in (1, 2, 7):
        with config.override(threads=threads):
            counts.add(lowered(lambda x: x + 1.0, (1 << 20,))[1][0].chunks)
    assert len(counts) == 1
    assert counts.pop() > 8


def test_small_work_is_one_chunk() -> None:
    assert lowered(lambda x: x + 1.0, (100, 10))[1][0].chunks == 1


def test_parts_of_wide_columns_are_many_rows() -> None:
    """Of 256 rows, in bands of 4096 columns."""
    group, launches, (x,) = lowered(lambda x: ops.sum(x, axes=(0,)), (600, 5000))
    parts = next(a for a in launches[0].args if isinstance(a, Scratch))
    assert len(launches) == 2 and launches[0].chunks == 3 * 2
    assert parts.size == 3 * 5000 * 4
    rng = np.random.default_rng(0)
    check_group(group, launches, {x: rng.random((600, 5000), np.float32)}, machine("native"))


def test_full_reduction_is_cut_and_combined() -> None:
    _, launches, _ = lowered(lambda x: ops.sum(x, axes=None), (1 << 20,))
    assert len(launches) == 2
    assert any(isinstance(a, Scratch) for a in launches[0].args)
    assert launches[0].chunks > 8


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shape", [(1 << 23,), (2100, 4096), (5, (1 << 21) + 3)])
def test_stores_past_the_caches(shape: tuple[int, ...], target: str) -> None:
    """Large outputs, aligned and not."""
    group, launches, (x, y) = lowered(lambda x, y: x + y, shape, shape[-1:], target=target)
    plain = shape[-1] % 16 == 0
    assert ("!nontemporal" in launches[0].kernel.ir) == plain
    rng = np.random.default_rng(1)
    arrays = {v: rng.random(v.shape, np.float32) for v in (x, y)}
    expected = (arrays[x] + arrays[y]).tobytes()
    for skew in (0, 4):
        found = execute(launches, arrays, machine(target), skew=skew)
        assert found[group.outputs[0]].tobytes() == expected


@pytest.mark.parametrize("target", TARGETS)
def test_conditions_of_stores_past_the_caches(target: str) -> None:
    """Rows that are written out: what the code for aligned memory has is not there in the other."""
    rows = 1 << 21
    where = {"begin": (0, 0, 1), "end": (rows, 1, 2)}
    group, launches, (x, y) = lowered(
        lambda x, y: catalogue.slice_update(x, y, **where), (rows, 2, 2), (rows, 1, 1),
        target=target,
    )  # fmt: skip
    assert "!nontemporal" in launches[0].kernel.ir
    rng = np.random.default_rng(1)
    arrays = {v: rng.random(v.shape, np.float32) for v in (x, y)}
    expected = arrays[x].copy()
    expected[:, :1, 1:] = arrays[y]
    found = execute(launches, arrays, machine(target))
    assert found[group.outputs[0]].tobytes() == expected.tobytes()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("column", [20, 32])
def test_columns_within_stores_past_the_caches(column: int, target: str) -> None:
    """What follows a column is, or is not, aligned for non-temporal vector stores."""
    rows, width = 1 << 16, 96
    where = {"begin": (0, column), "end": (rows, 2 * column)}
    group, launches, (x, y) = lowered(
        lambda x, y: catalogue.slice_update(x, y, **where), (rows, width), (rows, column),
        target=target,
    )  # fmt: skip
    assert "!nontemporal" in launches[0].kernel.ir
    rng = np.random.default_rng(1)
    arrays = {v: rng.random(v.shape, np.float32) for v in (x, y)}
    expected = arrays[x].copy()
    expected[:, column : 2 * column] = arrays[y]
    found = execute(launches, arrays, machine(target))
    assert found[group.outputs[0]].tobytes() == expected.tobytes()


def test_loop_tree_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    def build(x: Any) -> Any:
        return ops.exp(x - ops.max(x, axes=(1,), keepdims=True))

    with config.override(debug=4):
        lowered(build, (100, 300), target="x86-64-v3")
    assert capsys.readouterr().err == (
        "max_subtract_exp_float32_100x300:\n"
        "  loop row in 0..100 part chunk of 54:\n"
        "    reduce maximum -> r0:\n"
        "      vector i1 in 0..300 by 8 x 4:\n"
        "        r0 maximum= m0[i1 + 300*row]\n"
        "    vector i1 in 0..300 by 8 x 4:\n"
        "      %6 = subtract(m0[i1 + 300*row], r0)\n"
        "      m1[i1 + 300*row] = exp(%6)\n"
    )


def test_a_reduction_read_at_another_row_raises() -> None:
    def build(x: Any) -> Any:
        return ops.sum(x, axes=(1,)) + x  # the sums are spread along the wrong axis

    with pytest.raises(CompileError, match="is read at another row than the one it reduces"):
        lowered(build, (40, 40))


def test_an_output_of_another_shape_raises() -> None:
    def build(x: Any) -> Any:
        return ops.sum(x, axes=(1,)), ops.transpose(x, perm=(1, 0))

    with pytest.raises(CompileError, match=r"expected the shape \(40, 30\) or what a reduction"):
        lowered(build, (40, 30))


def broken(launch: Launch, old: str, new: str) -> Launch:
    assert old in launch.kernel.ir
    return replace(launch, kernel=Kernel("broken", launch.kernel.ir.replace(old, new)))


def test_the_tester_sees_wrong_results() -> None:
    group, (launch,), (x,) = lowered(lambda x: x * 3.0, (50,))
    arrays = {x: np.ones(50, np.float32)}
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        check_group(group, [broken(launch, "fmul", "fadd")], arrays, machine("native"))


def test_the_tester_sees_writes_outside() -> None:
    group, (launch,), (x,) = lowered(lambda x: x * 3.0, (50,))
    longer = replace(launch, args=(*launch.args[:-2], 60, launch.args[-1]))
    with pytest.raises(OutOfBoundsError, match="bytes around the buffer changed"):
        check_group(group, [longer], {x: np.ones(50, np.float32)}, machine("native"))


def test_the_tester_sees_results_that_depend_on_the_split() -> None:
    group, (launch,), (x,) = lowered(lambda x: x * 3.0, (1 << 17,))
    wrong = broken(
        launch, "mul nsw i64 %begin,", "mul nsw i64 %thread,"
    )  # starts where it should not
    with pytest.raises(AssertionError, match="split"):
        check_group(group, [wrong], {x: np.ones(1 << 17, np.float32)}, machine("native"))
