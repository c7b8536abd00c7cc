"""Printed graphs parse back to the same text; the parser rejects malformed text."""

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import GraphError
from weft.ir.dtype import DTYPES, float32, int32
from weft.ir.graph import Graph
from weft.ir.node import Literal, Source, TensorType
from weft.ir.parser import parse_graph
from weft.ir.printer import format_graph

attributes = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=8)
    | st.sampled_from(list(DTYPES.values())),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=6,
)
shapes = st.none() | st.lists(st.none() | st.integers(0, 9), max_size=4).map(tuple)
types = st.builds(TensorType, st.sampled_from(list(DTYPES.values())), shapes)


@st.composite
def graphs(draw, depth=1):
    graph = Graph()
    values, nodes = [], []
    for _ in range(draw(st.integers(0, 5))):
        inputs = tuple(draw(st.lists(st.sampled_from(values), max_size=3))) if values else ()
        operands = tuple(f"a{i}" for i in range(draw(st.integers(0, len(inputs)))))
        keys = st.from_regex(r"[a-z]{1,4}", fullmatch=True)
        attrs = draw(st.dictionaries(keys, attributes, max_size=3))
        regions = tuple(draw(st.lists(graphs(depth - 1), max_size=1))) if depth else ()
        kinds = tuple(draw(st.lists(types, max_size=3)))
        source = draw(st.none() | st.builds(Source, st.text('a/\\"b.py', max_size=6), st.just(3)))
        with graph.name_scope(draw(st.sampled_from(["", "scope"]))):
            node = graph.add(
                "op", inputs, attrs, kinds, None, operands, regions, source or Source("f.py", 1)
            )
        nodes.append(node)
        values.extend(node.outputs)
    if len(nodes) > 1 and draw(st.booleans()):
        graph.add_control_edge(nodes[0], nodes[-1])
    graph.outputs = tuple(values[-2:])
    return graph


@given(graphs())
def test_text_round_trips(graph):
    text = format_graph(graph)
    assert format_graph(parse_graph(text)) == text


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("size", [0, 3, 40])
def test_constants_round_trip_bit_by_bit(name, size):
    rng = np.random.default_rng(0)
    dtype = DTYPES[name].numpy
    array = (rng.uniform(0, 1, size) * 50).astype(dtype)
    if DTYPES[name].is_floating and size == 3:
        array[:] = [math.nan, -math.inf, -0.0]
    graph = Graph()
    kind = TensorType(DTYPES[name], array.shape)
    graph.add("constant", (), {"value": Literal(array)}, (kind,))
    found = parse_graph(format_graph(graph)).nodes[0].attrs["value"].array
    assert found.dtype == dtype and found.tobytes() == array.tobytes()


def test_large_integers_stay_exact():
    graph = Graph()
    array = np.array([2**63 - 1, -(2**63)])
    graph.add("constant", (), {"value": Literal(array)}, (TensorType(DTYPES["int64"], (2,)),))
    assert (parse_graph(format_graph(graph)).nodes[0].attrs["value"].array == array).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("graph {", "end of the text"),
        ("graph { %a: float33[] = x() }", "element type"),
        ("graph { %a: float32[] = x(%b:0) }", "no node is called 'b'"),
        ("graph { %a: float32[] = x() return %a:1 }", "has 1 outputs"),
        ("graph { %a: float32[] = x() %a: int32[] = y() }", "is taken"),
        ('graph { %a = x() {k: opaque("f")} }', "no attribute value begins with 'opaque'"),
        ("graph { } }", "expected the end"),
        ("graph {\n\n ; }", "line 3: unexpected ';"),
    ],
)
def test_malformed_text_raises(text, message):
    with pytest.raises(GraphError, match=message.replace("(", r"\(")):
        parse_graph(text)


def test_a_node_prints_everything():
    graph = Graph()
    x = graph.add("placeholder", (), {}, (TensorType(float32, (None, 2)),), "x")
    s = graph.add("shape", (), {}, (TensorType(int32, (2,)),), "s")
    with graph.device("cpu:0"), graph.control_dependencies([s]):
        graph.add(
            "reshape", (x.outputs[0], s.outputs[0]), {"k": (1,)}, (TensorType(float32, None),),
            "y", ("shape",), source=Source("train.py", 31),
        )  # fmt: skip
    line = format_graph(graph).splitlines()[3].strip()
    assert line == (
        '%y: float32[...] = reshape(%x:0, shape=%s:0) {k: (1,)} ^%s @"cpu:0" !"train.py":31'
    )
    assert ml_dtypes.bfloat16 is not None


def test_an_attribute_may_be_called_like_a_number():
    graph = Graph()
    graph.add("op", (), {"nan": float("inf"), "inf": float("nan")}, (), source=Source("f.py", 1))
    text = format_graph(graph)
    assert format_graph(parse_graph(text)) == text
