"""Reductions over ranks in a program: they start early, end late, and keep their order."""

from __future__ import annotations

from weft import distributed as dist
from weft import ops
from weft.ir.dtype import float32
from weft.ir.graph import Graph
from weft.ir.node import TensorType
from weft.ir.parser import parse_graph
from weft.ir.printer import format_graph
from weft.ops.call import trace
from weft.ops.communication.unshard import begin_shards, end_shards
from weft.passes.pipeline import grouped, optimize
from weft.passes.schedule import schedule
from weft.passes.specialize import specialize
from weft.passes.step import Request, Step
from weft.transform.gradient import gradients

LAYERS = 4


def training_step() -> Step:
    """Dense layers, whose gradients are reduced in a bucket each, the last layer's first."""
    graph = Graph()
    with graph.as_default():
        x = y = ops.placeholder(dtype="float32", shape=(256, 256))
        weights = [
            ops.variable(key=f"w{i}", dtype="float32", shape=(256, 256)) for i in range(LAYERS)
        ]
        reads = [ops.read(w) for w in weights]
        for w in reads:
            y = ops.tanh(ops.matmul(y, w))
        found = gradients([ops.sum(y)], reads)[::-1]
        reduced = ops.reduced_later(*found, buckets=(1,) * LAYERS, reduction="mean")[::-1]
        updates = [
            ops.assign(w, r - g).node for w, r, g in zip(weights, reads, reduced, strict=True)
        ]
    assert format_graph(parse_graph(format_graph(graph))) == format_graph(graph)
    request = Request(graph, (), tuple(updates), (x,))
    return optimize(specialize(request, [TensorType(float32, (256, 256))], {}, {}))


def test_buckets_begin_between_gradients_and_end_behind_all_of_them() -> None:
    order = [g.nodes[0].op for g in schedule(grouped(training_step()), ()).groups]
    begins = [i for i, op in enumerate(order) if op == "begin_all_reduce"]
    ends = [i for i, op in enumerate(order) if op == "end_all_reduce"]
    assert len(begins) == len(ends) == LAYERS and max(begins) < min(ends)
    products = [i for i, op in enumerate(order) if op == "matmul"]
    after = [sum(i > begin for i in products) for begin in begins]
    assert after[0] > after[1] > 0, order  # of 11; after the last gradients nothing is left


def test_equal_reductions_are_neither_merged_nor_left_in_another_order() -> None:
    graph = Graph()
    with graph.as_default():
        x = ops.placeholder(dtype="float32", shape=(4,))
        first, second = (ops.all_reduce.all(x, reduction=r)[0] for r in ("sum", "max"))
        again = ops.all_reduce.all(x, reduction="sum")[0]
        fetches = (again, second, first)
    step = optimize(specialize(Request(graph, fetches, (), (x,)), [x.type], {}, {}))
    groups = schedule(grouped(step), ()).groups
    assert [g.nodes[0].attrs["reduction"] for g in groups] == ["sum", "max", "sum"]


def test_branches_with_reductions_and_calls_of_python_keep_the_order_of_the_program() -> None:
    """Large arrays may not delay them, which are large on some ranks alone."""
    graph = Graph()
    with graph.as_default():
        x = ops.placeholder(dtype="float32", shape=(4,))
        large = ops.placeholder(dtype="float32", shape=(256, 256))
        flag = ops.placeholder(dtype="int32", shape=())
        plain = trace(lambda a: (a + 1.0,), [large.type])
        summed = trace(lambda a: (ops.all_reduce.all(a, reduction="sum")[0],), [large.type])
        first = ops.switch(flag, ops.exp(large), branches=(plain, summed))
        second = ops.all_reduce.all(x, reduction="max")[0]
        called = {"function": lambda a: a, "dtypes": ("float32",)}
        third = ops.host_call(ops.tanh(large), shapes=((256, 256),), **called)
        fourth = ops.host_call(x, shapes=((4,),), **called)
    feeds = (x, large, flag)
    request = Request(graph, (first, second, third, fourth), (), feeds)
    step = optimize(specialize(request, [v.type for v in feeds], {}, {}))
    order = [g.nodes[0].op for g in schedule(grouped(step), ()).groups]
    kept = [op for op in order if op not in ("exp", "tanh")]
    assert kept == ["switch", "all_reduce", "host_call", "host_call"], order


def test_gradients_of_reductions_are_reductions() -> None:
    graph = Graph()
    with graph.as_default():
        x = ops.placeholder(dtype="float32", shape=(4,))
        for name in ("all_reduce", "broadcast_from"):
            y = getattr(ops, name).all(x)[0]
            (g,) = gradients([ops.sum(y * y)], [x])
            assert g.shape == (4,)
    assert len([n for n in graph.nodes if n.op == "all_reduce"]) == 3


def sharded_step() -> Step:
    """Dense layers whose weights are gathered before each use; in a world of one."""
    graph, shape = Graph(), (256, 256)
    with graph.as_default():
        x = y = ops.placeholder(dtype="float32", shape=shape)
        weights = [ops.variable(key=f"w{i}", dtype="float32", shape=shape) for i in range(LAYERS)]
        reads = [ops.read(w) for w in weights]
        for w in reads:
            (ticket,) = begin_shards(w, shapes=(shape,), dims=(0,), group=0)
            static = {"shapes": (shape,), "dims": (0,), "dtypes": (float32,), "group": 0}
            whole, _ = end_shards(ticket, **static)
            y = ops.tanh(ops.matmul(y, ops.unshard.all(whole, w, dims=(0,))[0]))
        found = gradients([ops.sum(y * y)], reads)
        updates = [ops.assign(w, r - g).node for w, r, g in zip(weights, reads, found, strict=True)]
    request = Request(graph, (), tuple(updates), (x,))
    return optimize(specialize(request, [TensorType(float32, shape)], {}, {}))


def test_weights_are_gathered_ahead_and_reduced_gradients_awaited_last() -> None:
    dist.init_process_group()
    try:
        order = [g.nodes[0].op for g in schedule(grouped(sharded_step()), ()).groups]
    finally:
        dist.destroy_process_group()
    names = {"begin_gather": "g", "end_gather": "G", "begin_reduce": "r", "end_reduce": "R"}
    found = "".join([{**names, "matmul": "*"}.get(op, "") for op in order])
    assert found[: 3 * LAYERS] == "gG*" * LAYERS
    # Once a layer's weights are there, the next ones are on their way; the first's are not read.
    assert found[3 * LAYERS :] == "gGg**rGg**rG**r*rRRRR"
