import numpy as np
import pytest

from weft import config, ops
from weft.errors import GraphError
from weft.ir.dtype import float32
from weft.ir.graph import Graph
from weft.ir.node import Node, TensorType
from weft.passes.pipeline import optimize, verify_types
from weft.passes.specialize import specialize
from weft.passes.step import Request
from weft.transform.gradient import gradients


def training_step():
    graph = Graph()
    with graph.as_default():
        x = ops.placeholder(dtype="float32", shape=(None, 4))
        w = ops.variable(key="w", dtype="float32", shape=(4, 2))
        read = ops.read(w)
        loss = ops.sum(ops.softmax(ops.matmul(x, read), axis=-1) ** 2.0)
        (g,) = gradients([loss], [read])
        update = ops.assign(w, read - g)
    return Request(graph, (loss,), (update.node,), (x,)), TensorType(float32, (3, 4))


def test_every_stage_verifies_and_prints(capsys):
    request, kind = training_step()
    with config.override(verify=True, debug=3):
        optimize(specialize(request, [kind], {}, {}))
    printed = capsys.readouterr().err
    for name in ("prune", "fold", "simplify", "cse"):
        assert f"# {name}: " in printed
    assert "matmul(" in printed


def test_effects_are_gone_after_specializing():
    request, kind = training_step()
    step = specialize(request, [kind], {}, {})
    names = {node.op for node in step.graph.nodes}
    assert not names & {"read", "assign", "group", "softmax"}
    assert step.updates == ("w",)
    assert all(not node.control for node in step.graph.nodes)


def test_a_wrong_type_is_found():
    x = Node("constant", (), {"value": None}, (TensorType(float32, (3,)),), "x")
    y = Node("exp", x.outputs, {}, (TensorType(float32, (4,)),), "y")
    with pytest.raises(GraphError, match=r"y has types float32\[4\], but its rules give"):
        verify_types(Graph([x, y]))


def test_concrete_shapes_that_do_not_fit_name_the_line_that_built_the_node():
    graph = Graph()
    with graph.as_default():
        x = ops.placeholder(dtype="float32", shape=(None, 4))
        y = ops.placeholder(dtype="float32", shape=(None, 4))
        z = x + y
    request = Request(graph, (z,), (), (x, y))
    kinds = [TensorType(float32, (3, 4)), TensorType(float32, (2, 4))]
    with pytest.raises(ValueError, match=r"add: .*\(3, 4\).*test_pipeline.py:\d+"):
        specialize(request, kinds, {}, {})
    assert np.float32 is float32.numpy.type
