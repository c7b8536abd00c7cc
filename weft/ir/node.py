"""Frozen nodes and the typed edges between them.

A node never changes after it is built, so graphs may share nodes and a rewrite is a new node.
A node's trailing inputs may supply attributes (`operands` names them): `reshape(x, shape)` with
a computed shape is the node `reshape`, inputs `(x, shape)`, operands `("shape",)`. Specialising a
graph evaluates them, so that every later pass sees attributes only.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from weft.ir.dtype import DType
from weft.ir.shape import Shape, show

if TYPE_CHECKING:
    from weft.ir.graph import Graph

PACKAGE: Final = str(Path(__file__).resolve().parent.parent) + "/"
NOT_THE_USER: Final = (PACKAGE, contextlib.__file__)
Attrs = Mapping[str, Any]


class Source(NamedTuple):
    """A place in the user's program."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file.rsplit('/', 1)[-1]}:{self.line}"


def user_source() -> Source | None:
    """The innermost line on the call stack that lies outside the package (and `contextlib`)."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        if not frame.f_code.co_filename.startswith(NOT_THE_USER):
            return Source(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return None


@dataclass(frozen=True)
class TensorType:
    """What an edge carries: element type and shape."""

    dtype: DType
    shape: Shape

    def __str__(self) -> str:
        if self.shape is None:
            return f"{self.dtype}[...]"
        return f"{self.dtype}[{','.join('?' if d is None else str(d) for d in self.shape)}]"


class Literal:
    """A frozen array that hashes by content: the `value` attribute of a constant."""

    __slots__ = ("_hash", "array")

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        frozen = np.array(array, order="C", copy=True)
        frozen.flags.writeable = False
        self.array: Final = frozen
        self._hash: int | None = None

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.array.dtype.str, self.array.shape, self.array.tobytes()))
        return self._hash

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Literal)
            and self.array.dtype == other.array.dtype
            and self.array.shape == other.array.shape
            and self.array.tobytes() == other.array.tobytes()
        )

    def __repr__(self) -> str:
        text = np.array2string(self.array, threshold=8, separator=",").replace("\n", "")
        return f"Literal({text})"


class Node:
    """One operation in a graph, frozen.

    Build nodes through `weft.ops`, which checks shapes and types; `Graph.add` is the raw door.
    """

    __slots__ = (
        "attrs", "control", "device", "inputs", "name", "op", "operands", "outputs",
        "regions", "source", "types",
    )  # fmt: skip
    op: Final[str]  # pyright: ignore[reportGeneralTypeIssues]
    inputs: Final[tuple[Value, ...]]  # pyright: ignore[reportGeneralTypeIssues]
    attrs: Final[Attrs]  # pyright: ignore[reportGeneralTypeIssues]
    types: Final[tuple[TensorType, ...]]  # pyright: ignore[reportGeneralTypeIssues]
    name: Final[str]  # pyright: ignore[reportGeneralTypeIssues]
    operands: Final[tuple[str, ...]]  # pyright: ignore[reportGeneralTypeIssues]
    control: Final[tuple[Node, ...]]  # pyright: ignore[reportGeneralTypeIssues]
    device: Final[str]  # pyright: ignore[reportGeneralTypeIssues]
    source: Final[Source | None]  # pyright: ignore[reportGeneralTypeIssues]
    regions: Final[tuple[Graph, ...]]  # pyright: ignore[reportGeneralTypeIssues]
    outputs: Final[tuple[Value, ...]]  # pyright: ignore[reportGeneralTypeIssues]

    def __init__(
        self,
        op: str,
        inputs: tuple[Value, ...],
        attrs: Attrs,
        types: tuple[TensorType, ...],
        name: str,
        operands: tuple[str, ...] = (),
        control: tuple[Node, ...] = (),
        device: str = "",
        source: Source | None = None,
        regions: tuple[Graph, ...] = (),
    ) -> None:
        put = object.__setattr__
        put(self, "op", op)
        put(self, "inputs", inputs)
        put(self, "attrs", attrs)
        put(self, "types", types)
        put(self, "name", name)
        put(self, "operands", operands)
        put(self, "control", control)
        put(self, "device", device)
        put(self, "source", source)
        put(self, "regions", regions)
        put(self, "outputs", tuple(Value(self, i) for i in range(len(types))))

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
        """The same operation on other inputs; itself where nothing changes."""
        control = self.control if control is None else control
        if inputs == self.inputs and control == self.control:
            return self
        return Node(
            self.op, inputs, self.attrs, self.types, self.name, self.operands, control,
            self.device, self.source, self.regions,
        )  # fmt: skip

    def describe(self) -> str:
        """`name (created at file.py:3)`, for messages."""
        return self.name if self.source is None else f"{self.name} (created at {self.source})"

    def __repr__(self) -> str:
        return f"<Node {self.name}: {self.op}>"


def _no_operators(op: str, *operands: object) -> Value:
    raise RuntimeError(f"operator {op}: import weft.ops first")


class Value:
    """An edge: output `index` of `node`, with its type. Arithmetic on it adds nodes."""

    __slots__ = ("index", "node")
    operator: Callable[..., Value] = staticmethod(_no_operators)  # set by weft.ops, the layer above

    def __init__(self, node: Node, index: int) -> None:
        self.node: Final = node
        self.index: Final = index

    @property
    def type(self) -> TensorType:
        """Element type and shape."""
        return self.node.types[self.index]

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self.node.types[self.index].dtype

    @property
    def shape(self) -> Shape:
        """Shape, with `None` for what is unknown."""
        return self.node.types[self.index].shape

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

    def __add__(self, other: Any) -> Value:
        return self.operator("add", self, other)

    def __radd__(self, other: Any) -> Value:
        return self.operator("add", other, self)

    def __sub__(self, other: Any) -> Value:
        return self.operator("subtract", self, other)

    def __rsub__(self, other: Any) -> Value:
        return self.operator("subtract", other, self)

    def __mul__(self, other: Any) -> Value:
        return self.operator("multiply", self, other)

    def __rmul__(self, other: Any) -> Value:
        return self.operator("multiply", other, self)

    def __truediv__(self, other: Any) -> Value:
        return self.operator("divide", self, other)

    def __rtruediv__(self, other: Any) -> Value:
        return self.operator("divide", other, self)

    def __floordiv__(self, other: Any) -> Value:
        return self.operator("floor_divide", self, other)

    def __mod__(self, other: Any) -> Value:
        return self.operator("remainder", self, other)

    def __pow__(self, other: Any) -> Value:
        return self.operator("power", self, other)

    def __neg__(self) -> Value:
        return self.operator("negative", self)

    def __matmul__(self, other: Any) -> Value:
        return self.operator("matmul", self, other)

    def __getitem__(self, key: Any) -> Value:
        return self.operator("subscript", self, key)

    __iter__ = None  # else Python would count subscripts up forever
