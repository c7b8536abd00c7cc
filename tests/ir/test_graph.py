import pytest

from weft.errors import GraphError
from weft.ir.dtype import float32
from weft.ir.graph import Graph, rewrite, toposort
from weft.ir.node import Node, TensorType
from weft.ir.verify import verify

SCALAR = (TensorType(float32, ()),)


def add(graph, op="op", *inputs, name=None):
    return graph.add(op, tuple(i.outputs[0] for i in inputs), {}, SCALAR, name)


def test_nodes_are_frozen_and_know_the_users_line():
    graph = Graph()
    node = add(graph)
    with pytest.raises(AttributeError, match="frozen"):
        node.op = "other"
    assert node.source.file == __file__
    assert node.describe().startswith("op (created at test_graph.py:")


def test_names_follow_tensorflow():
    graph = Graph()
    names = [add(graph, name=n).name for n in ("a", "a", "A", "b", "a_1", "a")]
    assert names == ["a", "a_1", "A_2", "b", "a_1_1", "a_3"]
    with graph.name_scope("s"):
        assert add(graph, name="a").name == "s/a"
    with graph.name_scope("s"):
        assert add(graph, name="a").name == "s_1/a"


def test_foreign_inputs_raise():
    a = add(Graph())
    with pytest.raises(GraphError, match="belongs to another graph"):
        add(Graph(), "op", a)


def test_a_cycle_through_control_edges_is_named():
    graph = Graph()
    a = add(graph, name="a")
    b = add(graph, "op", a, name="b")
    graph.add_control_edge(a, b)
    with pytest.raises(GraphError, match=r"cycle: .*a \(created at test_graph.py:\d+\) <- b"):
        toposort(graph, [b])
    with pytest.raises(GraphError, match="cycle"):
        verify(graph)


def test_deep_chains_meet_no_recursion_limit():
    graph = Graph()
    node = add(graph)
    for _ in range(20_000):
        node = add(graph, "op", node)
    graph.outputs = node.outputs
    assert len(toposort(graph, [node])) == 20_001
    assert len(rewrite(graph, lambda node, out: None).nodes) == 20_001


def test_rewrite_replaces_and_keeps_control():
    graph = Graph()
    a, b = add(graph, name="a"), add(graph, name="b")
    with graph.control_dependencies([a]):
        c = add(graph, "twice", b, name="c")
    graph.outputs = c.outputs

    def rule(node, out):
        return add(out, "new").outputs if node.op == "twice" else None

    out = rewrite(graph, rule)
    assert [n.op for n in out.nodes] == ["op", "op", "new"]
    assert out.outputs[0].node.op == "new"
    unchanged = rewrite(graph, lambda node, out: None)
    assert unchanged.nodes == graph.nodes


def test_the_verifier_finds_faults():
    graph = Graph()
    a = add(graph, name="a")
    b = add(graph, "op", a, name="b")
    verify(Graph([a, b], b.outputs))
    with pytest.raises(GraphError, match="does not come before it"):
        verify(Graph([b, a]))
    with pytest.raises(GraphError, match="output a:0 is not in the graph"):
        verify(Graph([], a.outputs))
    false = Node("op", (), {}, SCALAR, "false")
    forged = type(a.outputs[0])(a, 0)
    with pytest.raises(GraphError, match="invalid edge"):
        verify(Graph([a, Node("op", (forged,), {}, SCALAR, "c"), false]))
