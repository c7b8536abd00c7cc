"""Parses the text that `weft.ir.printer` writes."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.errors import GraphError
from weft.ir.dtype import HOSTED, NAMED, DType
from weft.ir.function import Function
from weft.ir.graph import Graph
from weft.ir.hooks import HOOKS
from weft.ir.node import Literal, Node, Source, TensorType, Value
from weft.ir.record import RECORDS
from weft.ir.shape import Shape
from weft.ir.signed_zero import told_apart

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<name>%[\w./\-]+)
      | (?P<string>"(?:[^"\\]|\\.)*")
      | (?P<number>-?(?:(?:inf|nan)\b(?!:)|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?))
      | (?P<word>[A-Za-z_]\w*)
      | (?P<mark>\.\.\.|[{}()\[\],:=^@&!?])
    )""",
    re.VERBOSE,
)


def parse_graph(
    text: str, aside: Sequence[np.ndarray[Any, Any]] = (),
    opaque: Callable[[str], Any] | None = None,
) -> Graph:  # fmt: skip
    """The graph that a text describes.

    Args:
        text: as `format_graph` writes it.
        aside: the arrays that are not in the text.
        opaque: makes what stands for a Python object that has no text, of the name of its class;
            by default such an object is refused.

    Raises:
        GraphError: the text is malformed; the message names the line.
    """
    parser = _Parser(text, aside, opaque)
    graph = parser.graph()
    parser.expect_end()
    return graph


class _Parser:
    def __init__(
        self, text: str, aside: Sequence[np.ndarray[Any, Any]],
        opaque: Callable[[str], Any] | None,
    ) -> None:  # fmt: skip
        self.aside, self.opaque = aside, opaque
        self.tokens: list[tuple[str, str, int]] = []
        position, line = 0, 1
        end = len(text.rstrip())
        while position < end:
            match = _TOKEN.match(text, position)
            if match is None:
                rest = text[position:].lstrip()
                line += text.count("\n", position, len(text) - len(rest))
                raise GraphError(f"parse: line {line}: unexpected {rest[:20]!r}")
            line += text.count("\n", position, match.end())
            position = match.end()
            kind = str(match.lastgroup)
            self.tokens.append((kind, match.group(kind), line))
        self.at = 0

    # -- tokens

    def peek(self) -> str:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else ""

    def take(self, kind: str | None = None, text: str | None = None) -> str:
        if self.at >= len(self.tokens):
            raise GraphError(f"parse: expected {text or kind}, got the end of the text")
        found, value, line = self.tokens[self.at]
        if (kind is not None and found != kind) or (text is not None and value != text):
            raise GraphError(f"parse: line {line}: expected {text or kind}, got {value!r}")
        self.at += 1
        return value

    def accept(self, text: str) -> bool:
        if self.peek() != text:
            return False
        self.at += 1
        return True

    def expect_end(self) -> None:
        if self.at < len(self.tokens):
            _, value, line = self.tokens[self.at]
            raise GraphError(f"parse: line {line}: expected the end of the text, got {value!r}")

    def listing(self, close: str, item: Callable[[], Any]) -> list[Any]:
        found: list[Any] = []
        while not self.accept(close):
            found.append(item())
            if not self.accept(","):
                self.take(text=close)
                break
        return found

    # -- grammar

    def graph(self) -> Graph:
        self.take(text="graph")
        self.take(text="{")
        graph = Graph()
        self._nodes(graph)
        return graph

    def _nodes(self, graph: Graph) -> None:
        """Nodes and outputs, up to the brace that closes them."""
        late: list[tuple[Node, str]] = []
        together: list[tuple[Node, list[str]]] = []
        while self.peek() not in ("}", "return"):
            self._node(graph, late, together)
        if self.accept("return"):
            outputs = [self._value(graph)]
            while self.accept(","):
                outputs.append(self._value(graph))
            graph.outputs = tuple(outputs)
        self.take(text="}")
        for node, before in late:
            graph.add_control_edge(node, graph.find(before))
        for node, others in together:
            graph.colocate([node], map(graph.find, others))

    def _node(
        self, graph: Graph, late: list[tuple[Node, str]], together: list[tuple[Node, list[str]]]
    ) -> None:
        name = self.take("name")[1:]
        types: list[TensorType] = []
        if self.accept(":"):
            types.append(self._type())
            while self.accept(","):
                types.append(self._type())
        self.take(text="=")
        op = self.take("word")
        self.take(text="(")
        operands: list[str] = []
        inputs = self.listing(")", lambda: self._input(graph, operands))
        attrs: dict[str, Any] = {}
        if self.accept("{"):
            attrs = dict(self.listing("}", self._attribute))
        before = self._marked("^")
        control = tuple(graph.find(b) for b in before if _has(graph, b))
        device = self._string() if self.accept("@") else ""
        others = self._marked("&")
        source = self._source() if self.accept("!") else None
        regions: list[Graph] = []
        while self.peek() == "graph":
            regions.append(self.graph())
        node = graph.append(
            Node(
                op, tuple(inputs), attrs, tuple(types), name, tuple(operands), control,
                device, source, tuple(regions),
            )
        )  # fmt: skip
        if others:
            together.append((node, others))
        late.extend((node, b) for b in before if not _has(graph, b) or b == name)

    def _input(self, graph: Graph, operands: list[str]) -> Value:
        if not self.peek().startswith("%"):
            operands.append(self.take("word"))
            self.take(text="=")
        return self._value(graph)

    def _value(self, graph: Graph) -> Value:
        node = graph.find(self.take("name")[1:])
        self.take(text=":")
        index = int(self.take("number"))
        if index >= len(node.outputs):
            raise GraphError(f"parse: {node.name} has {len(node.outputs)} outputs, got {index}")
        return node.outputs[index]

    def _type(self) -> TensorType:
        dtype = self._dtype()
        self.take(text="[")
        if self.accept("..."):
            self.take(text="]")
            return TensorType(dtype, None)
        shape: Shape = tuple(
            self.listing("]", lambda: None if self.accept("?") else int(self.take("number")))
        )
        return TensorType(dtype, shape)

    def _dtype(self) -> DType:
        word = self.take("word")
        if word not in _DTYPES:
            raise GraphError(f"parse: expected an element type, got {word!r}")
        return _DTYPES[word]

    def _marked(self, mark: str) -> list[str]:
        """Names of nodes, each behind a mark."""
        found: list[str] = []
        while self.accept(mark):
            found.append(self.take("name")[1:])
        return found

    def _source(self) -> Source:
        file = self._string()
        self.take(text=":")
        return Source(file, int(self.take("number")))

    def _string(self) -> str:
        body = self.take("string")[1:-1]
        return re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], body)

    def _attribute(self) -> tuple[str, Any]:
        key = self.take("word")
        self.take(text=":")
        return key, self._attribute_value()

    def _attribute_value(self) -> Any:
        kind, text, line = self.tokens[self.at]
        if kind == "string":
            return self._string()
        if kind == "number":
            self.at += 1
            return int(text) if re.fullmatch(r"-?\d+", text) else told_apart(float(text))
        if self.accept("("):
            return tuple(self.listing(")", self._attribute_value))
        if text in _WORDS:
            self.at += 1
            return _WORDS[text]
        if text in _FORMS:
            self.at += 1
            return _FORMS[text](self)
        if text == "opaque" and self.opaque is not None:
            self.at += 1
            self.take(text="(")
            name = self._string()
            self.take(text=")")
            return self.opaque(name)
        if text in RECORDS:
            self.at += 1
            self.take(text="(")
            return RECORDS[text](**dict(self.listing(")", self._attribute)))
        raise GraphError(f"parse: line {line}: no attribute value begins with {text!r}")

    def function(self) -> Function:
        graph = Graph()
        self.take(text="(")
        inputs = self.listing(")", lambda: self._parameter(graph))
        details = dict(self.listing("]", self._attribute)) if self.accept("[") else {}
        self.take(text="{")
        self._nodes(graph)
        nodes = tuple(graph.nodes[len(inputs) :])
        build = HOOKS.function or Function
        return build(tuple(inputs), graph.outputs, nodes, **details)

    def _parameter(self, graph: Graph) -> Value:
        """An input of a function, as `%x: float32[3]`."""
        name = self.take("name")[1:]
        self.take(text=":")
        kind = self._type()
        attrs = {"dtype": kind.dtype, "shape": kind.shape}
        return graph.append(Node("placeholder", (), attrs, (kind,), name)).outputs[0]

    def numbers(self) -> Literal:
        dtype, shape = self._array_head()
        self.take(text="[")
        flat = self.listing("]", self._attribute_value)
        self.take(text=")")
        if dtype.is_complex:  # real and imaginary parts in turn
            return Literal(np.array(flat).view(np.complex128).astype(dtype.numpy).reshape(shape))
        wide = dtype.numpy if dtype.is_integer else np.float64
        return Literal(np.array(flat, wide).astype(dtype.numpy).reshape(shape))

    def raw(self) -> Literal:
        dtype, shape = self._array_head()
        data = base64.b64decode(self._string())
        self.take(text=")")
        return Literal(np.frombuffer(data, dtype.numpy).reshape(shape))

    def beside(self) -> Literal:
        line = self.tokens[self.at][2]
        self.take(text="(")
        number = int(self.take("number"))
        self.take(text=")")
        if not 0 <= number < len(self.aside):
            given = len(self.aside)
            raise GraphError(f"parse: line {line}: array {number} of {given} beside the text")
        return Literal(self.aside[number])

    def texts(self) -> Literal:
        self.take(text="(")
        shape = self._attribute_value()
        self.take(text=",")
        self.take(text="[")
        flat = self.listing("]", lambda: base64.b64decode(self._string()))
        self.take(text=")")
        array = np.empty(shape, np.object_)
        array.reshape(-1)[:] = flat
        return Literal(array)

    def _array_head(self) -> tuple[DType, tuple[int, ...]]:
        self.take(text="(")
        dtype = self._dtype()
        self.take(text=",")
        shape = self._attribute_value()
        self.take(text=",")
        return dtype, shape


_DTYPES: dict[str, DType] = {**NAMED, **HOSTED}
_WORDS: dict[str, Any] = {"None": None, "True": True, "False": False, **_DTYPES}

_FORMS: dict[str, Callable[[_Parser], Any]] = {
    "array": _Parser.numbers,
    "bytes": _Parser.raw,
    "aside": _Parser.beside,
    "texts": _Parser.texts,
    "function": _Parser.function,
}


def _has(graph: Graph, name: str) -> bool:
    try:
        graph.find(name)
    except GraphError:
        return False
    return True
