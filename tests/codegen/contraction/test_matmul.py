"""Matmul kernels against NumPy in float64, for any division of the work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from families import TARGETS, check_cases, group_for, machine
from harness import Array, check_group, execute, group_of
from hypothesis import given
from hypothesis import strategies as st
from pairwise import name_of, pairwise
from strategies import at_most

from weft import ops
from weft.codegen.contraction import finish, plan
from weft.codegen.contraction.matmul import matmul
from weft.codegen.contraction.order import in_pairs, is_few
from weft.codegen.contraction.plan import plan_of
from weft.codegen.contraction.product import product_of
from weft.codegen.contraction.split import steps_of_part
from weft.codegen.target import Target
from weft.ir import dtype as types
from weft.ir.dtype import DType
from weft.ir.graph import Graph
from weft.ir.node import Value
from weft.ir.shape import known
from weft.passes.group import Group
from weft.passes.launch import Launch, Scratch

FLOATS = (types.float32, types.float64, types.float16, types.bfloat16)
SIZES = (1, 2, 3, 5, 7, 8, 10, 13, 14, 15, 16, 17, 28, 31, 32, 33, 50, 64, 100, 130)
EPSILON = {"float32": 6e-8, "float64": 1.2e-16, "float16": 4.9e-4, "bfloat16": 3.9e-3}


def draw(shape: Sequence[int], dtype: DType, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    if dtype.is_integer:
        return rng.integers(-1000, 1000, shape).astype(dtype.numpy)
    return rng.standard_normal(shape).astype(dtype.numpy)


def turned(x: Array, turn: bool) -> Array:
    return np.swapaxes(x, -1, -2) if turn else x


def check_product(
    m: int,
    k: int,
    n: int,
    turns: tuple[bool, bool] = (False, False),
    dtype: DType = types.float32,
    batches: tuple[tuple[int, ...], tuple[int, ...]] = ((), ()),
    names: Sequence[str] = TARGETS,
) -> None:
    """One product on every target, with the error bound of a sum of k products in any order."""
    x_shape = batches[0] + ((k, m) if turns[0] else (m, k))
    y_shape = batches[1] + ((n, k) if turns[1] else (k, n))
    x, y = draw(x_shape, dtype, 1), draw(y_shape, dtype, 2)
    attrs = {"transpose_x": turns[0], "transpose_y": turns[1]}
    group = group_for("matmul", (x, y), attrs)
    wide = types.int64.numpy if dtype.is_integer else types.float64.numpy
    left, right = turned(x.astype(wide), turns[0]), turned(y.astype(wide), turns[1])
    exact, sizes = left @ right, np.abs(left) @ np.abs(right)
    feeds = dict(zip(group.inputs, (x, y), strict=True))
    for name in names:
        goal = machine(name)
        launches = matmul(group, goal)
        (found,) = execute(launches, feeds, goal).values() if launches else (exact,)
        if dtype.is_integer:
            np.testing.assert_array_equal(found, exact.astype(dtype.numpy))
        else:
            sums = EPSILON["float64" if dtype is types.float64 else "float32"] * (k + 1) * sizes
            bound = sums + EPSILON[dtype.name] * np.abs(exact) + 1e-7
            assert (np.abs(found.astype(np.float64) - exact) <= bound).all()
        check_splits(launches, feeds, goal, found)


def check_splits(
    launches: Sequence[Launch], feeds: dict[Value, Array], target: Target, found: Array
) -> None:
    """The same bits however chunks are shared out, and on buffers that no vector is aligned to."""
    for seed in (0, 1) if launches else ():
        (again,) = execute(launches, feeds, target, seed, skew=4 * seed).values()
        assert found.tobytes() == again.tobytes()


def test_the_operation_s_own_cases() -> None:
    check_cases(matmul, "matmul")


@at_most(60)
@given(
    st.sampled_from(SIZES), st.sampled_from((0, *SIZES, 260, 300)), st.sampled_from(SIZES),
    st.tuples(st.booleans(), st.booleans()), st.sampled_from((*FLOATS, types.int32, types.int64)),
    st.sampled_from((((), ()), ((), ()), ((3,), (3,)), ((3,), ()), ((), (3,)), ((2, 1), (3,)))),
)  # fmt: skip
def test_products(
    m: int, k: int, n: int, turns: tuple[bool, bool], dtype: DType, batches: Any
) -> None:
    check_product(m, k, n, turns, dtype, batches)


@pytest.mark.parametrize("turns", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("dtype", [types.float32, types.bfloat16], ids=str)
def test_large_products_in_panels(turns: tuple[bool, bool], dtype: DType) -> None:
    check_product(262, 1024, 160, turns, dtype)
    check_product(
        264, 1024, 160, turns, dtype
    )  # rows of x read in place although they share a cache set
    check_product(512, 530, 129, turns, dtype)


def test_a_large_operand_is_copied_in_passing() -> None:
    check_product(260, 300, 4100)


@pytest.mark.parametrize("turn_y", [False, True])
@pytest.mark.parametrize("dtype", [types.float32, types.bfloat16], ids=str)
def test_panels_of_a_small_left_operand_are_shared(turn_y: bool, dtype: DType) -> None:
    check_product(61, 300, 1030, (True, turn_y), dtype)
    check_product(40, 280, 520, (True, turn_y), dtype, ((2,), (2,)))


@pytest.mark.parametrize("k", [32, 33, 66, 1030])
@pytest.mark.parametrize("turns", [(False, False), (True, False), (False, True), (True, True)])
def test_bfloat16_by_pairs(turns: tuple[bool, bool], k: int) -> None:
    check_product(45, k, 70, turns, types.bfloat16)
    arrays = (np.zeros((45, k), types.bfloat16.numpy), np.zeros((k, 70), types.bfloat16.numpy))
    product = product_of(group_for("matmul", arrays, TURNS).nodes[0])
    native = machine("native")
    assert in_pairs(product, native) == native.bf16


@pytest.mark.parametrize("n", [1, 2, 7, 10, 12])
@pytest.mark.parametrize("turns", [(False, False), (True, False), (False, True)])
def test_narrow_products(n: int, turns: tuple[bool, bool]) -> None:
    check_product(100, 784, n, turns)
    check_product(37, 129, n, turns, types.float64)


def test_both_operands_in_panels_of_a_launch() -> None:
    check_product(300, 20, 512, (True, True), types.bfloat16)
    check_product(300, 20, 512, (True, False), batches=((2,), (2,)))


def test_stores_past_the_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finish, "STREAMED", 0)
    check_product(50, 64, 64)
    check_product(30, 20, 96, dtype=types.float64)


@pytest.mark.parametrize("turns", [(False, False), (True, False), (False, True), (True, True)])
def test_large_outputs_of_short_sums_are_written_by_rows(
    turns: tuple[bool, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "LARGE_OUTPUT", 0)
    check_product(300, 20, 530, turns)
    check_product(512, 5, 100, turns)
    check_product(50, 3, 200, turns, types.bfloat16)
    check_product(7, 1, 9, turns, batches=((3,), (3,)))


@pytest.mark.parametrize("m", [1, 3, 4])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_few_rows_read_long_columns_in_streams(m: int, dtype: DType) -> None:
    check_product(m, 384, 96, (False, True), dtype)
    check_product(m, 530, 131, (False, True), dtype)
    check_product(m, 1040, 66, (False, True), dtype, ((2, 1), (2, 3)))
    group = group_for("matmul", STREAMED, {**TURNS, "transpose_y": True})
    for name in TARGETS:
        (launch,) = matmul(group, machine(name))
        assert "streamed" in launch.kernel.name


@pytest.mark.parametrize("n", [5, 10, 12])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_few_columns_meet_rows_in_place(n: int, dtype: DType) -> None:
    for turn in (False, True):
        check_product(37, 386, n, (False, turn), dtype)
        check_product(9, 7, n, (False, turn), dtype, ((2, 1), (2, 3)))
    x, w = np.ones((20, 70), np.float32), np.ones((70, n), np.float32)
    w[:, 0] = np.inf  # what follows the last step is not multiplied by them
    group = group_for("matmul", (x, w), TURNS)
    (launch,) = matmul(group, machine("native"))
    assert "columns" in launch.kernel.name or not is_few(
        product_of(group.nodes[0]), machine("native")
    )
    (found,) = execute(
        (launch,), dict(zip(group.inputs, (x, w), strict=True)), machine("native")
    ).values()
    np.testing.assert_array_equal(found, x @ w)


@pytest.mark.parametrize("m", [1, 4, 11, 32])
def test_few_rows_against_a_large_operand(m: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "FAR", 0)
    check_product(m, 40, 4101)
    check_product(m, 7, 4096, dtype=types.float64)


def test_one_row_against_a_large_operand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "FAR", 0)
    check_product(1, 768, 4101)
    check_product(1, 514, 5000, dtype=types.float64)
    check_product(1, 70, 4100, batches=((3,), (3,)))


def test_many_small_matrices_share_chunks() -> None:
    check_product(8, 8, 8, batches=((300,), (300,)))
    group = group_for("matmul", (np.zeros((300, 8, 8), "f"), np.zeros((300, 8, 8), "f")), TURNS)
    (launch,) = matmul(group, machine("native"))
    assert launch.chunks == 1


@pytest.mark.parametrize("shapes", [((0, 3), (3, 2)), ((2, 3), (3, 0)), ((0, 2, 3), (3, 4))])
def test_empty_outputs_need_no_kernel(shapes: Any) -> None:
    group = group_for("matmul", tuple(np.zeros(s, np.float32) for s in shapes), TURNS)
    assert matmul(group, machine("native")) == ()


STREAMED = (np.zeros((1, 384), np.float32), np.zeros((96, 384), np.float32))
TURNS = {"transpose_x": False, "transpose_y": False}


def _relu(z: Value, bias: Value, other: Value) -> tuple[Value, ...]:
    return (ops.maximum(z + bias, 0.0),)


def _gelu_like(z: Value, bias: Value, other: Value) -> tuple[Value, ...]:
    return (ops.tanh(z + bias) * other,)


def _descent(z: Value, bias: Value, other: Value) -> tuple[Value, ...]:
    return (other - z * 0.01,)


def _momentum(z: Value, bias: Value, other: Value) -> tuple[Value, ...]:
    velocity = other * 0.5 + z
    return (velocity, other - velocity * 0.25)


def fused(
    shapes: tuple[tuple[int, ...], tuple[int, ...]],
    tail: Callable[[Value, Value, Value], tuple[Value, ...]],
    dtype: DType,
    **attrs: bool,
) -> tuple[Group, dict[Value, Array]]:
    """A product and its elementwise tail as one group, with inputs."""
    graph = Graph()
    with graph.as_default():
        x, y = (ops.placeholder(dtype=dtype, shape=s) for s in shapes)
        z = ops.matmul(x, y, **attrs)
        bias = ops.placeholder(dtype=dtype, shape=known(z.shape)[-1:])
        other = ops.placeholder(dtype=dtype, shape=z.shape)
        outputs = tail(z, bias, other)
    group = group_of(graph, outputs)
    nodes = sorted(group.nodes, key=lambda node: node.op != "matmul")
    group = Group(tuple(nodes), group.inputs, outputs)
    feeds = {v: draw(known(v.shape), dtype, i) for i, v in enumerate(group.inputs)}
    return group, feeds


def small(name: str) -> Target:
    """A target with a second-level cache that small operands exceed."""
    return replace(machine(name), l2=1 << 17)


@pytest.mark.parametrize("dtype", [types.float32, types.float64, types.bfloat16], ids=str)
@pytest.mark.parametrize("shapes", [((1400, 33), (1400, 64)), ((1302, 36), (1302, 70))], ids=str)
def test_long_sums_into_few_results_are_cut(shapes: Any, dtype: DType) -> None:
    group, feeds = fused(shapes, _momentum, dtype, transpose_x=True)
    assert steps_of_part(product_of(group.nodes[0]), small("native")) > 0
    for name in TARGETS:
        goal = small(name)
        tolerance = {8: 1e-12, 4: 2e-5, 2: 2e-2}[dtype.size]
        check_group(group, matmul(group, goal), feeds, goal, tolerance, tolerance * 40)


@pytest.mark.parametrize("dtype", [types.float32, types.bfloat16], ids=str)
def test_long_sums_of_a_batch_have_a_thread_each(dtype: DType) -> None:
    group, feeds = fused(((3, 1001, 40), (3, 1001, 70)), _relu, dtype, transpose_x=True)
    plan = plan_of(product_of(group.nodes[0]), machine("native"))
    assert plan.pack_left and plan.pack_right and not (plan.before or plan.left_before)
    for name in TARGETS:
        tolerance = {4: 2e-5, 2: 2e-2}[dtype.size]
        check_group(
            group, matmul(group, machine(name)), feeds, machine(name), tolerance, tolerance * 40
        )


PRODUCTS: Sequence[tuple[Any, Any, Any]] = (
    ((100, 784), (784, 10), {}),
    ((100, 65), (100, 10), {"transpose_x": True}),
    ((33, 17), (17, 50), {}),
    ((40, 70), (70, 1), {}),
    ((2, 3, 20, 16), (16, 32), {}),
    ((2, 20, 16), (2, 30, 16), {"transpose_y": True}),
    ((2, 400), (131, 400), {"transpose_y": True}),
    ((5, 0), (0, 9), {}),
    ((140, 512), (512, 130), {}),
)


@pytest.mark.parametrize(
    ("product", "dtype", "tail"),
    pairwise(
        PRODUCTS,
        (types.float32, types.float64, types.bfloat16),
        (_relu, _gelu_like, _descent, _momentum),
    ),
    ids=name_of,
)
def test_epilogues(product: tuple[Any, Any, Any], dtype: DType, tail: Any) -> None:
    x, y, attrs = product
    group, feeds = fused((x, y), tail, dtype, **attrs)
    for name in TARGETS:
        goal = machine(name)
        tolerance = {8: 1e-12, 4: 2e-5, 2: 2e-2}[dtype.size]
        deep = max(1, x[-1]) ** 0.5
        check_group(group, matmul(group, goal), feeds, goal, tolerance, tolerance * deep)


def test_updates_in_place_are_offered_for_what_the_epilogue_reads_only() -> None:
    group, _ = fused(((784, 100), (100, 10)), _descent, types.float32)
    *_, launch = matmul(group, machine("native"))
    ((written, read),) = launch.inplace
    assert launch.args[written] is group.outputs[0]
    assert launch.args[read] is group.inputs[-1]


def test_an_operand_of_the_product_is_never_written_in_place() -> None:
    graph = Graph()
    with graph.as_default():
        x = ops.placeholder(dtype=types.float32, shape=(32, 32))
        y = ops.matmul(x, x) + x
    group = group_of(graph, (y,))
    assert all(launch.inplace == () for launch in matmul(group, machine("native")))


def test_a_copy_of_y_is_a_launch_that_all_items_share() -> None:
    zeros = np.zeros((512, 512), np.float32)
    native = machine("native")
    copy, multiply = matmul(group_for("matmul", (zeros, zeros), TURNS), native)
    assert copy.args[1] is multiply.args[1] and isinstance(copy.args[1], Scratch)
    (alone,) = matmul(group_for("matmul", (zeros[:128], zeros), TURNS), native)
    assert not isinstance(alone.args[1], Scratch)


@pytest.mark.parametrize("name", TARGETS)
def test_chunks_and_code_size(name: str) -> None:
    goal = machine(name)
    for m, k, n in ((1024, 1024, 1024), (128, 784, 512), (100, 784, 10), (2, 3, 4)):
        x, y = np.zeros((m, k), np.float32), np.zeros((k, n), np.float32)
        launches = matmul(group_for("matmul", (x, y), TURNS), goal)
        assert 1 <= launches[-1].chunks <= 128
        assert launches[-1].flops == 2 * m * k * n
        assert all(len(launch.kernel.ir) < 100_000 for launch in launches)
    big = matmul(group_for("matmul", (np.zeros((2048, 2048), "f"),) * 2, TURNS), goal)
    assert big[-1].chunks >= 16


def test_the_kernels_are_chosen_by_shape() -> None:
    def product(x: tuple[int, int], y: tuple[int, int], **attrs: bool) -> Any:
        arrays = (np.zeros(x, np.float32), np.zeros(y, np.float32))
        return product_of(group_for("matmul", arrays, attrs).nodes[0])

    if machine("native").vector_bits < 512:
        return
    native = machine("native")
    assert is_few(product((100, 784), (784, 10)), native)
    assert not is_few(product((100, 784), (784, 64)), native)
    direct = plan_of(product((100, 96), (96, 96)), native)
    assert not direct.pack_left and not direct.pack_right
    large = plan_of(product((1024, 1024), (1024, 1024)), native)
    assert large.before and large.pack_left  # its rows would meet in one cache set
    apart = plan_of(product((1024, 1000), (1000, 1024)), native)
    assert apart.before and not apart.pack_left
    turned = plan_of(product((100, 1024), (100, 1024), transpose_x=True), native)
    assert turned.before and turned.pack_left and turned.depth == 100
    wide = plan_of(product((400, 1000), (1000, 8192)), native)
    assert wide.pack_right and not wide.before and wide.tall * wide.tile.rows >= 400
    shared = plan_of(product((2048, 384), (2048, 1536), transpose_x=True), native)
    assert shared.left_before and not shared.before and shared.tall * shared.tile.rows == 384
    twice = plan_of(product((128, 512), (128, 512), transpose_x=True), native)
    assert twice.left_before and twice.before and twice.wide * twice.tile.columns < 512
    few = plan_of(product((128, 784), (784, 512)), native)
    assert few.pack_right and few.depth * few.tile.columns * 4 <= native.l1 // 2
    short = plan_of(product((16, 1000), (16, 1024), transpose_x=True), native)
    assert short.by_rows and not short.pack_left
    passing = plan_of(product((400, 32001), (32001, 1024)), native)
    assert passing.left_before and not passing.before  # y is read once, from memory
    crowd = plan_of(product((400, 1024), (1024, 4096)), native)
    assert crowd.left_before and 4096 // (crowd.wide * crowd.tile.columns) == 16  # no odd one
    few = plan_of(product((64, 1024), (1024, 1024)), native)
    assert few.pack_right and not few.before and not few.pack_left and few.depth < large.depth


def test_the_checks_can_fail() -> None:
    x, y = draw((20, 20), types.float32, 0), draw((20, 20), types.float32, 1)
    group = group_for("matmul", (x, y), TURNS)
    feeds = dict(zip(group.inputs, (x, y), strict=True))
    goal = machine("native")
    *before, launch = matmul(group, goal)
    check_group(group, (*before, launch), feeds, goal, 1e-5, 1e-5)
    first, second, *rest = launch.args
    swapped = replace(launch, args=(second, first, *rest))
    with pytest.raises(AssertionError):
        check_group(group, (*before, swapped), feeds, goal, 1e-5, 1e-5)
