"""Frozen nodes and the typed edges between them.

A node never changes after it is built, so graphs may share nodes, and a rewrite makes new nodes. A
node's trailing inputs may supply attributes (`operands` names them): `reshape(x, shape)` with a
computed shape is the node `reshape`, inputs `(x, shape)`, operands `("shape",)`. Specializing a
graph evaluates them, so that later passes see only attributes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from weft.errors import NOT_THE_USER as NOT_THE_USER
from weft.errors import PACKAGE as PACKAGE
from weft.errors import PLACE as PLACE
from weft.errors import Source as Source
from weft.errors import at_user_line as at_user_line
from weft.errors import user_source as user_source
from weft.ir.dtype import DType
from weft.ir.hooks import HOOKS
from weft.ir.shape import Shape, show

Attrs = Mapping[str, Any]


class TensorType(NamedTuple):
    """The type of an edge: element type and shape. A tuple, because types are hashed often."""

    dtype: DType
    shape: Shape

    def __str__(self) -> str:
        if self.shape is None:
            return f"{self.dtype}[...]"
        return f"{self.dtype.name}[{','.join('?' if d is None else str(d) for d in self.shape)}]"


class Literal:
    """A frozen array, hashed by content: the `value` attribute of a constant.

    An array of objects holds texts as bytes.
    """

    __slots__ = ("_hash", "array")

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        frozen = np.array(array, order="C", copy=True)
        frozen.flags.writeable = False
        self.array: Final = frozen
        self._hash: int | None = None

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.array.dtype.str, self.array.shape, self._content()))
        return self._hash

    def _content(self) -> object:
        if self.array.dtype.hasobject:
            return tuple(self.array.ravel().tolist())
        return self.array.tobytes()

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Literal)
            and self.array.dtype == other.array.dtype
            and self.array.shape == other.array.shape
            and self._content() == other._content()
        )

    def __repr__(self) -> str:
        text = np.array2string(self.array, threshold=8, separator=",").replace("\n", "")
        return f"Literal({text})"


class Region(Protocol):
    """The interface of a graph inside a node (`weft.ir.graph`), as nodes and graphs see it."""

    nodes: list[Node]
    outputs: tuple[Value, ...]
    edges: dict[Node, tuple[Node, ...]]

    def predecessors(self, node: Node) -> list[Node]:
        """Nodes that must run before `node`."""
        ...

    def colocated(self) -> Iterator[tuple[Node, Node]]:
        """Pairs of nodes that must be on one device."""
        ...


class _Fields:
    """The fields of a node under construction."""

    __slots__ = (
        "attrs", "control", "device", "inputs", "name", "op", "operands", "outputs",
        "regions", "source", "types",
    )  # fmt: skip
    op: str
    inputs: tuple[Value, ...]
    attrs: Attrs
    types: tuple[TensorType, ...]
    name: str
    operands: tuple[str, ...]
    control: tuple[Node, ...]
    device: str
    source: Source | None
    regions: tuple[Region, ...]
    outputs: tuple[Value, ...]


class Node(_Fields):
    """One operation in a graph, frozen.

    Build nodes through `weft.ops`, which checks shapes and types; `Graph.add` is the unchecked way.
    """

    __slots__ = ()

    def __new__(
        cls, op: str, inputs: tuple[Value, ...], attrs: Attrs, types: tuple[TensorType, ...],
        name: str, operands: tuple[str, ...] = (), control: tuple[Node, ...] = (), device: str = "",
        source: Source | None = None, regions: tuple[Region, ...] = (),
    ) -> Node:  # fmt: skip
        """Fills a node and freezes it by changing its class, cheaper than `object.__setattr__`."""
        fields: Any = _Fields()
        fields.op = op
        fields.inputs = inputs
        fields.attrs = attrs
        fields.types = types
        fields.name = name
        fields.operands = operands
        fields.control = control
        fields.device = device
        fields.source = source
        fields.regions = regions
        if len(types) == 1:
            fields.outputs = (Value(fields, 0),)
        else:
            fields.outputs = tuple([Value(fields, i) for i in range(len(types))])
        fields.__class__ = cls
        return fields

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"node {self.name}: nodes are frozen; build a new one")

    def __deepcopy__(self, memo: object) -> Node:
        return self

    @property
    def data_inputs(self) -> tuple[Value, ...]:
        """The inputs that carry data, without those that supply attributes."""
        return self.inputs[: len(self.inputs) - len(self.operands)]

    def with_inputs(
        self, inputs: tuple[Value, ...], control: tuple[Node, ...] | None = None
    ) -> Node:
        """The same operation on other inputs; the node itself if nothing changes."""
        control = self.control if control is None else control
        if inputs == self.inputs and control == self.control:
            return self
        return Node(
            self.op, inputs, self.attrs, self.types, self.name, self.operands, control,
            self.device, self.source, self.regions,
        )  # fmt: skip

    def with_attrs(self, attrs: Attrs) -> Node:
        """The same operation with other attributes, of the same types."""
        return Node(
            self.op, self.inputs, attrs, self.types, self.name, self.operands, self.control,
            self.device, self.source, self.regions,
        )  # fmt: skip

    def describe(self) -> str:
        """`name (created at file.py:3)`, for messages."""
        return self.name if self.source is None else f"{self.name} (created at {self.source})"

    def __repr__(self) -> str:
        return f"<Node {self.name}: {self.op}>"


def _operator(name: str):
    """Python's operator for an operation, and its form for a value on the right."""

    def operator(self: Value, other: Any) -> Value:
        return HOOKS.operator(name, self, other)

    def reflected(self: Value, other: Any) -> Value:
        return HOOKS.operator(name, other, self)

    return operator, reflected


class Value:
    """An edge: output `index` of `node`, with its type. Arithmetic on it adds nodes."""

    __slots__ = ("index", "node", "type")

    def __init__(self, node: Node, index: int) -> None:
        self.node: Final = node
        self.index: Final = index
        self.type: Final = node.types[index]  # element type and shape

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self.type.dtype

    @property
    def shape(self) -> Shape:
        """Shape, with `None` for what is unknown."""
        return self.type.shape

    @property
    def rank(self) -> int | None:
        """Number of dimensions, `None` if unknown."""
        shape = self.shape
        return None if shape is None else len(shape)

    @property
    def name(self) -> str:
        """`node:index`, as TensorFlow names tensors."""
        return f"{self.node.name}:{self.index}"

    def __repr__(self) -> str:
        return f"<Value {self.name} {self.dtype} {show(self.shape)}>"

    __add__, __radd__ = _operator("add")
    __sub__, __rsub__ = _operator("subtract")
    __mul__, __rmul__ = _operator("multiply")
    __truediv__, __rtruediv__ = _operator("divide")
    __floordiv__, __mod__ = _operator("floor_divide")[0], _operator("remainder")[0]
    __pow__, __matmul__ = _operator("power")[0], _operator("matmul")[0]
    __getitem__ = _operator("subscript")[0]

    def __neg__(self) -> Value:
        return HOOKS.operator("negative", self)

    __iter__ = None  # without it Python would iterate by subscripts forever
