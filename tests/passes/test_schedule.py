"""The order of groups: data, updates after their readers, and memory freed early."""

from __future__ import annotations

from weft import ops
from weft.ir.dtype import float32
from weft.ir.graph import Graph
from weft.ir.node import TensorType
from weft.passes.pipeline import grouped, optimize
from weft.passes.schedule import schedule
from weft.passes.specialize import specialize
from weft.passes.step import Request, Step
from weft.transform.gradient import gradients

LAYERS = 5


def training_step() -> Step:
    """Dense layers; all updates are made after all gradients, as optimizers do."""
    graph = Graph()
    with graph.as_default():
        x = y = ops.placeholder(dtype="float32", shape=(256, 256))
        weights = [
            ops.variable(key=f"w{i}", dtype="float32", shape=(256, 256)) for i in range(LAYERS)
        ]
        reads = [ops.read(w) for w in weights]
        for w in reads:
            y = ops.tanh(ops.matmul(y, w))
        found = gradients([ops.sum(y)], reads)
        updates = [ops.assign(w, r - g).node for w, r, g in zip(weights, reads, found, strict=True)]
    request = Request(graph, (), tuple(updates), (x,))
    return optimize(specialize(request, [TensorType(float32, (256, 256))], {}, {}))


def test_a_weight_is_updated_as_soon_as_its_gradient_is_known() -> None:
    step = training_step()
    fused = grouped(step)
    old = {
        v.node.attrs["key"]: v for n in step.graph.nodes if n.op == "variable" for v in n.outputs
    }
    pairs = [(old[key], fused.root(new)) for key, new in step.new_values.items()]
    plan = schedule(fused, pairs)
    assert plan.in_place == {new for _, new in pairs}
    writers = [i for i, g in enumerate(plan.groups) for _, new in pairs if new in g.outputs]
    written = [new for g in plan.groups for _, new in pairs if new in g.outputs]
    assert written[0] is pairs[-1][1]  # the last layer first
    assert set(written) == {new for _, new in pairs}
    assert writers[0] < len(plan.groups) - LAYERS  # not all at the end


def test_groups_follow_what_they_read() -> None:
    step = training_step()
    fused = grouped(step)
    known = {v for n in step.graph.nodes if not n.inputs for v in n.outputs}
    for group in schedule(fused, ()).groups:
        assert {fused.root(v) for v in group.inputs} <= known
        known.update(group.outputs)
