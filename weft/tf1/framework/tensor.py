"""Operations and the tensors that they produce: TensorFlow's view of the nodes of a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from weft.documentation import Reads
from weft.errors import DTypeError, GraphError
from weft.ir.node import Node, Value
from weft.ir.shape import Shape, merge, show
from weft.tf1.framework.assumed import truths
from weft.tf1.framework.dtypes import DType, as_dtype
from weft.tf1.framework.node_def import NodeDef, Output
from weft.tf1.framework.overload import OPERATORS as OPERATORS
from weft.tf1.framework.overload import Overloads
from weft.tf1.framework.tensor_shape import TensorShape, as_shape
from weft.tf1.version import Behavior

__all__ = ["Operation", "Tensor"]


class Graph(Protocol):
    """What an operation needs from its graph: `weft.tf1.framework.graph`."""

    keys: dict[str, Any]
    at_once: Any
    capture: Any

    def narrow(self, value: Value, shape: Shape) -> Value:
        """The same value with a more specific static shape."""
        ...

    def building(self, scope: str = "", control: Sequence[Operation] = ()) -> Any:
        """A context in which nodes are added."""
        ...

    def rebind(self, tensor: Tensor, value: Value) -> None:
        """Let a tensor refer to another value."""
        ...

    def get_operations(self) -> list[Operation]:
        """All operations, in creation order."""
        ...

    def add_control_edge(self, op: Operation, before: Operation) -> None:
        """Add a control dependency."""
        ...


class Session(Protocol):
    """What `eval()` and `run()` need from a session: `weft.tf1.session.base`."""

    @property
    def graph(self) -> Any:
        """Its graph."""
        ...

    def run(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Any:
        """Compute values."""
        ...


class OperatorNotAllowedInGraphError(DTypeError):
    """A symbolic tensor was used where Python needs a value, such as a condition or an iterable."""


class Tensor(Overloads):
    """An output of an operation: a value that a session computes.

    Attributes:
        has_value: whether it has its value already, in eager execution.
    """

    has_value = False
    __slots__ = ("_dtype", "_name", "_op", "_used", "_value", "_value_index")

    def __init__(self, op: Operation, index: int, value: Value, dtype: DType | None = None) -> None:
        self._op = op
        self._value_index = index
        self._value = value
        self._used = value  # what operations read: `value`, or the same with a more specific shape
        self._dtype = as_dtype(value.dtype) if dtype is None else dtype
        self._name = f"{op.name}:{index}"

    op = Reads["Operation"]("_op", "The operation that produces this tensor.")
    name = Reads[str]("_name", "`operation:index`.")
    value_index = Reads[int]("_value_index", "The index among the operation's outputs.")
    graph = Reads[Graph]("_op.graph", "The graph that holds this tensor.")
    dtype = Reads[DType]("_dtype", "The element type.")

    @property
    def is_ref(self) -> bool:
        """Whether it refers to a variable."""
        return self._dtype._is_ref_dtype  # pyright: ignore[reportPrivateUsage]

    device = Reads[str]("_op.device", "The device of the operation.")

    @property
    def shape(self) -> TensorShape:
        """The static shape."""
        return TensorShape(self._used.shape)

    def get_shape(self) -> TensorShape:
        """The same as `shape`."""
        return self.shape

    value = Reads[Value](
        "_value", "The value in Weft's graph that this tensor stands for: what is fetched and fed."
    )
    used = Reads[Value]("_used", "The value that operations read.")

    def set_shape(self, shape: Any) -> None:
        """Refine the static shape.

        Raises:
            ShapeError: it contradicts the known shape.
        """
        merged = merge(self._used.shape, as_shape(shape).as_dims())
        if merged == self._used.shape:
            return
        rebuild = self.graph.keys.get("set_shape", {}).get(self._op)
        if rebuild is not None:
            rebuild(self, merged)
        else:
            self._used = self.graph.narrow(self._used, merged)

    def rebind(self, value: Value, used: Value | None = None) -> None:
        """Refer to another value: a variable's reference, for its value.

        Args:
            used: the same with a more specific shape, for operations.
        """
        self._value, self._used = value, value if used is None else used

    def consumers(self) -> list[Operation]:
        """The operations that read this tensor."""
        return [op for op in self.graph.get_operations() if any(t is self for t in op.inputs)]

    def eval(
        self, feed_dict: Mapping[Any, Any] | None = None, session: Session | None = None
    ) -> Any:
        """The value, computed by `session` or the default session."""
        return _session(session, self.graph, "eval()").run(self, feed_dict)

    def _as_graph_tensor(self) -> Tensor:
        return self

    def __iter__(self) -> Iterator[Any]:
        if truths() is not None:
            return iter([OPERATORS["getitem"](self, 0)])
        raise OperatorNotAllowedInGraphError(
            f"{self.name}: a symbolic tensor cannot be iterated over; use tf.unstack"
        )

    def _compares(self, other: Any) -> bool:
        """Whether `==` is by values: in TensorFlow 2, but for graphs that programs make."""
        graph = self.graph
        if not Behavior.is_2 or (graph.at_once is None and graph.capture is None):
            return False
        return other is not None and (not isinstance(other, str) or self._dtype.name == "string")

    def __eq__(self, other: Any) -> Any:
        return OPERATORS["equal"](self, other) if self._compares(other) else self is other

    def __ne__(self, other: Any) -> Any:
        return OPERATORS["not_equal"](self, other) if self._compares(other) else self is not other

    def __hash__(self) -> int:
        return id(self)

    def __bool__(self) -> bool:
        assumed = truths()
        if assumed is not None:
            return assumed.next()
        raise OperatorNotAllowedInGraphError(
            f"{self.name}: a symbolic tensor has no truth value while the graph is built; "
            "use `if t is not None`, or run it in a session"
        )

    def __len__(self) -> int:
        shape = self._used.shape
        if Behavior.is_2 and shape and shape[0] is not None:
            return shape[0]
        raise DTypeError(f"len is not defined for symbolic tensor {self.name}; use tf.shape(x)[0]")

    def __repr__(self) -> str:
        return f"<tf.Tensor '{self.name}' shape={self.shape} dtype={self._dtype.name}>"

    def __str__(self) -> str:
        shape = "" if self._used.shape is None else f", shape={show(self._used.shape)}"
        return f'Tensor("{self.name}"{shape}, dtype={self._dtype.name})'


class Operation(Overloads):
    """An operation of a graph. Subclasses are user-defined: see `weft.tf1.control.user_op`."""

    construct: Callable[..., None] | None = None  # set by weft.tf1.control.user_op, a layer above
    _control_inputs: list[Operation]

    def __init__(self, inputs: Sequence[Any] = (), name: str | None = None, **options: Any) -> None:
        if type(self) is Operation or Operation.construct is None:
            raise GraphError(
                "Operation: write a subclass with `forward`; tf functions make the rest"
            )
        Operation.construct(self, inputs, name, **options)

    def setup(
        self, graph: Graph, kind: str, name: str, inputs: Sequence[Tensor],
        control: Sequence[Operation], attrs: Mapping[str, Any],
    ) -> None:  # fmt: skip
        """Initialize a new operation, before its nodes are built."""
        self._graph = graph
        self._type = kind
        self._name = name
        self._inputs = list(inputs)
        self._control_inputs = list(control)
        self._attrs = attrs
        self._outputs: list[Tensor] = []
        self._nodes: tuple[Node, ...] = ()
        self._device = ""
        self._groups: Sequence[bytes] = ()

    def place(self, device: str, groups: Sequence[bytes] = ()) -> None:
        """Set the device and the colocation groups, before the nodes are built."""
        self._device = device
        self._groups = groups or self._groups

    def finish(self, outputs: Sequence[Tensor], nodes: tuple[Node, ...]) -> None:
        """Attach the built nodes and outputs."""
        self._outputs = list(outputs)
        self._nodes = nodes

    @property
    def name(self) -> str:
        """The unique name in the graph."""
        return self._name

    type = Reads[str]("_type", "TensorFlow's type name, such as `MatMul`.")
    graph = Reads[Graph]("_graph", "The graph that holds the operation.")

    @property
    def inputs(self) -> list[Tensor]:
        """The tensors that the operation reads."""
        return list(self._inputs)

    @property
    def outputs(self) -> list[Tensor]:
        """The tensors that the operation produces."""
        return list(self._outputs)

    @property
    def control_inputs(self) -> list[Operation]:
        """Operations that run before this one without passing it a value."""
        return list(self._control_inputs)

    nodes = Reads[tuple[Node, ...]](
        "_nodes", "The nodes of Weft's graph that belong to this operation."
    )
    device = Reads[str]("_device", "The requested device, or an empty string.")

    def colocation_groups(self) -> list[bytes]:
        """The groups of operations that are on one device: `loc:@` and the name of a member.

        Without any, its own.
        """
        return list(self._groups) or [f"loc:@{self._name}".encode()]

    @property
    def node_def(self) -> NodeDef:
        """The operation as a record: `name`, `op`, `input`, `device`, `attr`."""
        inputs = [t.name.removesuffix(":0") for t in self._inputs]
        inputs += [f"^{op.name}" for op in self._control_inputs]
        outputs = [Output(t.value, t.used, t.is_ref) for t in self._outputs]
        return NodeDef(self._name, self._type, inputs, self._device, dict(self._attrs), outputs,
                       self._nodes, self._groups)  # fmt: skip

    def get_attr(self, name: str) -> Any:
        """The attribute `name`, such as `transpose_a` of a `MatMul`.

        Raises:
            GraphError: the operation has no such attribute.
        """
        if name in self._attrs:
            return self._attrs[name]
        if name == "_class" and self._groups:
            return list(self._groups)
        if name in ("T", "dtype") and self._outputs:
            return self._outputs[0].dtype.base_dtype
        raise GraphError(f"operation {self._name!r} has no attribute {name!r}")

    def values(self) -> tuple[Tensor, ...]:
        """The outputs, as a tuple."""
        return tuple(self._outputs)

    def run(
        self, feed_dict: Mapping[Any, Any] | None = None, session: Session | None = None
    ) -> None:
        """Run the operation in `session` or the default session."""
        _session(session, self._graph, "run()").run(self, feed_dict)

    def _add_control_input(self, op: Operation) -> None:
        """Add a control dependency on `op`, although both operations already exist."""
        self._control_inputs.append(op)
        self._graph.add_control_edge(self, op)

    def _add_control_inputs(self, ops: Sequence[Operation]) -> None:
        for op in ops:
            self._add_control_input(op)

    def _as_graph_tensor(self) -> Tensor:
        if type(self) is Operation or not self._outputs:
            raise DTypeError(
                f"expected a tensor, got operation {self._name!r}; did you mean .outputs?"
            )
        return self._outputs[0]

    def __repr__(self) -> str:
        return f"<tf.Operation '{self._name}' type={self._type}>"

    def __str__(self) -> str:
        inputs = ", ".join(t.name for t in self._inputs)
        return f"{self._name} = {self._type}({inputs})"


class _Hooks:
    """Filled in by the session module, a layer above, once it is loaded."""

    default_session: Callable[[], Session | None] = staticmethod(lambda: None)


HOOKS = _Hooks()


def _session(session: Session | None, graph: Graph, what: str) -> Session:
    found = HOOKS.default_session() if session is None else session
    if found is None:
        raise GraphError(
            f"{what}: there is no default session; use `with sess.as_default()` "
            f"or pass {what[:-1]}session=sess)"
        )
    if found.graph is not graph:
        raise GraphError(f"{what}: the session's graph is not the graph of this operation")
    return found
