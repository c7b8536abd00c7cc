"""The graph that a program defines before running it: names, scopes, collections."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from weft import ops
from weft.errors import DTypeError, GraphError, WeftError
from weft.ir.graph import Graph as IRGraph
from weft.ir.node import Node, TensorType, Value, user_source
from weft.ir.shape import Shape, is_static, known
from weft.ops.declaration import Op
from weft.ops.declaration.memory_check import check_room, in_memory
from weft.tf1.errors import FinalizedError, NameError_
from weft.tf1.framework.collection import Collections
from weft.tf1.framework.defaults import Defaults
from weft.tf1.framework.device import Devices
from weft.tf1.framework.graph_def import GraphDef
from weft.tf1.framework.naming import VALID_NAME, Names
from weft.tf1.framework.tensor import Operation, Tensor

Build = str | Op | Callable[..., Any]


class Graph(Names, Collections, Devices):
    """A program's operations, their names, devices and collections.

    Attributes:
        at_once: in eager execution, what computes operations and has the values of variables.
    """

    at_once: Any = None

    def __init__(self) -> None:
        Names.__init__(self)
        Collections.__init__(self)
        self.ir = IRGraph()
        self.seed: int | None = None
        self.epoch = 0  # incremented when built operations change: sessions then make new plans
        self._operations: dict[str, Operation] = {}
        self._tensors: dict[Value, Tensor] = {}
        self._finalized = False
        self._lock = threading.RLock()
        self.variable_scopes: Any = None  # the VariableStore of weft.tf1.variable.variable_scope
        self.keys: dict[str, Any] = {}  # variables by their key in a session's state
        self._op_seeds = 0
        self.capture: Callable[[Tensor], Tensor] | None = None  # of tensors of other graphs

    # queries
    @property
    def version(self) -> int:
        """Increases with every operation."""
        return len(self._operations)

    @property
    def finalized(self) -> bool:
        """Whether the graph is finalized: it accepts no more operations."""
        return self._finalized

    def finalize(self) -> None:
        """Accept no more operations."""
        self._finalized = True

    def unfinalize(self) -> None:
        """Accept operations again."""
        self._finalized = False

    def as_default(self) -> contextlib.AbstractContextManager[Graph]:
        """Make this the thread's default graph, in a `with` block."""
        return _graphs.within(self)

    def get_operations(self) -> list[Operation]:
        """All operations, in creation order."""
        return list(self._operations.values())

    def get_operation_by_name(self, name: str) -> Operation:
        """The operation named `name`.

        Raises:
            GraphError: there is none (also a `KeyError`).
        """
        if not _is_name(name):
            raise DTypeError(f"operation names are strings, got {name!r}")
        return self.as_graph_element(name, allow_tensor=False)

    def get_tensor_by_name(self, name: str) -> Tensor:
        """The tensor named `operation:index`.

        Raises:
            GraphError: there is none (also a `KeyError`), or it is not a tensor's name.
        """
        if not _is_name(name):
            raise DTypeError(f"tensor names are strings, got {name!r}")
        return self.as_graph_element(name, allow_operation=False)

    def as_graph_element(
        self, obj: Any, allow_tensor: bool = True, allow_operation: bool = True
    ) -> Any:
        """The tensor or operation of this graph that `obj` is or names.

        Raises:
            GraphError: it belongs to another graph, or there is no such name.
            DTypeError: `obj` is neither a name nor an element of a graph.
        """
        if isinstance(obj, str):
            return self._named(obj, allow_tensor, allow_operation)
        convert: Any = getattr(obj, "_as_graph_element", getattr(obj, "_as_graph_tensor", None))
        if type(obj) is Operation:
            if not allow_operation:
                raise DTypeError(f"expected a tensor, got operation {obj.name!r}")
            element: Any = obj
        elif convert is not None:
            element = convert()
        else:
            raise DTypeError(f"expected a tensor or an operation, got {obj!r}")
        if element.graph is not self:
            raise GraphError(f"{element.name} is not an element of this graph")
        return element

    def _named(self, name: str, allow_tensor: bool, allow_operation: bool) -> Any:
        if ":" in name and allow_tensor:
            op_name, _, index = name.rpartition(":")
            if not index.isdigit():
                raise GraphError(f"expected a tensor's name such as 'x:0', got {name!r}")
            op = self._operations.get(op_name)
            if op is None:
                raise NameError_(
                    f"there is no tensor {name!r}: the graph has no operation {op_name!r}"
                )
            if int(index) >= len(op.outputs):
                raise NameError_(
                    f"there is no tensor {name!r}: {op_name!r} has {len(op.outputs)} outputs"
                )
            return op.outputs[int(index)]
        if not allow_operation:
            raise GraphError(
                f"{name!r} is an operation's name; a tensor's is '<operation>:<index>'"
            )
        if ":" in name:
            raise GraphError(f"{name!r} is a tensor's name, expected an operation's")
        op = self._operations.get(name)
        if op is None:
            raise NameError_(f"there is no operation {name!r} in the graph")
        return op

    def is_feedable(self, tensor: Tensor) -> bool:
        """Whether `tensor` may be fed: always."""
        return tensor.graph is self

    def is_fetchable(self, element: Any) -> bool:
        """Whether `element` may be fetched: always."""
        return element.graph is self

    # contexts
    @property
    def control(self) -> tuple[Operation, ...]:
        """The control dependencies of operations built now."""
        return getattr(self._local, "control", ())

    @contextlib.contextmanager
    def control_dependencies(self, control_inputs: Iterable[Any] | None) -> Iterator[None]:
        """Operations built inside run after these; `None` clears the current ones."""
        before: tuple[Operation, ...] = getattr(self._local, "control", ())
        if control_inputs is None:
            self._local.control = ()
        else:
            found = [_operation_of(self.as_graph_element(item)) for item in control_inputs]
            self._local.control = tuple(dict.fromkeys((*before, *found)))
        try:
            yield
        finally:
            self._local.control = before

    @property
    def in_body(self) -> bool:
        """Whether a branch or a loop body is being built."""
        return getattr(self._local, "bodies", 0) > 0

    @contextlib.contextmanager
    def body(self) -> Iterator[None]:
        """Operations built inside belong to a branch or a loop body."""
        before: int = getattr(self._local, "bodies", 0)
        self._local.bodies = before + 1
        try:
            yield
        finally:
            self._local.bodies = before

    @property
    def container_name(self) -> str:
        """The container of resources built now; empty for the default one."""
        return getattr(self._local, "container", "")

    @contextlib.contextmanager
    def container(self, container_name: str) -> Iterator[str]:
        """Queues, tables and other resources built inside live in this container."""
        before = self.container_name
        self._local.container = container_name
        try:
            yield container_name
        finally:
            self._local.container = before

    def next_op_seed(self) -> int:
        """The seed of the next operation if only the graph's seed is set."""
        self._op_seeds += 1
        return self._op_seeds

    # building
    def emit(
        self, kind: str, inputs: Sequence[Tensor], build: Build, *args: Any, name: str,
        attrs: Mapping[str, Any] | None = None, ref: bool = False, into: Operation | None = None,
        values: Sequence[Value] | None = None, **options: Any,
    ) -> Operation:  # fmt: skip
        """Add an operation.

        Args:
            kind: TensorFlow's type name.
            inputs: tensors, whose values are the first arguments of `build`.
            build: an op of the catalogue, its name, or a function from values to values.
            args: further positional arguments of `build`.
            name: its name; a trailing slash keeps it as it is.
            attrs: the values of `get_attr`.
            ref: whether the outputs are references to a variable. It is put with those that it
                is given references to.
            into: an instance of a subclass of `Operation` to fill in.
            values: values for `build`, if they are not those of `inputs`.
            options: keyword arguments of `build`.
        """
        make: Op | Callable[..., Any] = getattr(ops, build) if isinstance(build, str) else build
        if self.capture is not None:
            inputs = [t if t.graph is self else self.capture(t) for t in inputs]
        with self._lock:
            op, full = self._begin(kind, inputs, name, attrs or {}, into)
            leaders = self._place(op, [t.op for t in inputs if t.is_ref] if ref else ())
            start = len(self.ir.nodes)
            scope = "" if isinstance(make, Op) else full
            with self.building(scope, self.control, op.device):
                values = [t.used for t in inputs] if values is None else values
                with in_memory(kind):
                    if isinstance(make, Op):
                        node = make.node((*values, *args), options, full)
                        made, nodes = node.outputs, (node,)
                    else:
                        made, nodes = _made(make(*values, *args, **options))
                for value in made:
                    if is_static(value.shape):
                        check_room(kind, known(value.shape), value.dtype)
                outputs = [self._tensor(op, i, v, ref) for i, v in enumerate(made)]
            op.finish(outputs, _distinct([*(t.value.node for t in outputs), *nodes]))
            if leaders:
                self._colocate(self.ir.nodes[start:], leaders)
            self._operations[full] = op
            return op

    def _begin(
        self, kind: str, inputs: Sequence[Tensor], name: str, attrs: Mapping[str, Any],
        into: Operation | None,
    ) -> tuple[Operation, str]:  # fmt: skip
        if self._finalized:
            raise FinalizedError("Graph is finalized and cannot be modified")
        for tensor in inputs:
            if tensor.graph is not self:
                raise GraphError(
                    f"{kind}: input {tensor.name} belongs to another graph{created_here()}"
                )
        full = name[:-1] if name.endswith("/") else self.unique_name(name)
        if not VALID_NAME.match(full):
            raise GraphError(f"{kind}: {full!r} is not a valid operation name")
        if full in self._operations:
            full = self.unique(full)
        op = Operation.__new__(Operation) if into is None else into
        op.setup(self, kind, full, inputs, self.control, attrs)
        return op, full

    def _tensor(self, op: Operation, index: int, value: Value, ref: bool = False) -> Tensor:
        if value in self._tensors:  # a separate tensor, so that feeding it does not feed the other
            value = ops.identity(value)
        tensor = Tensor(op, index, value)
        if ref:
            tensor = Tensor(op, index, value, tensor.dtype._as_ref)  # pyright: ignore[reportPrivateUsage]
        self._tensors[value] = tensor
        return tensor

    @contextlib.contextmanager
    def building(
        self, scope: str = "", control: Sequence[Operation] = (), device: str | None = None
    ) -> Iterator[None]:
        """Nodes that `weft.ops` creates inside go to this graph, under `scope`, after `control`.

        They are put on `device`, or where `tf.device` says by name.
        """
        nodes = [node for op in control for node in op.nodes]
        device = self._scopes.merged or "" if device is None else device
        with (
            self._lock,
            self.ir.as_default(),
            self.ir.prefix(scope + "/" if scope else ""),
            self.ir.control_dependencies(nodes),
            self.ir.device(device),
        ):
            yield

    def narrow(self, value: Value, shape: Shape) -> Value:
        """`value` with a more specific static shape."""
        with self.building("", ()):
            kind = TensorType(value.dtype, shape)
            return self.ir.add(
                "identity", (value,), {}, (kind,), value.node.name + "/shaped"
            ).outputs[0]

    def rebind(self, tensor: Tensor, value: Value) -> None:
        """Let a tensor refer to another value from now on."""
        tensor.rebind(value)
        self._tensors[value] = tensor

    def wrap(self, value: Value, kind: str = "") -> Tensor:
        """The tensor of a value; values that a transformation created become operations."""
        found = self._tensors.get(value)
        if found is not None:
            return found
        node = value.node
        inputs = [self._tensors[v] for v in node.inputs if v in self._tensors]
        name = self.unique(node.name)
        op = Operation.__new__(Operation)
        op.setup(self, kind or node.op, name, inputs, (), {})
        op.place(node.device, self._groups_of(node))
        tensors: list[Tensor] = []
        for index, output in enumerate(node.outputs):
            tensors.append(self._tensors.setdefault(output, Tensor(op, index, output)))
        self.put(op, tensors, (node,))
        return self._tensors[value]

    def put(self, op: Operation, outputs: Sequence[Tensor], nodes: tuple[Node, ...]) -> None:
        """Add an operation whose nodes the graph has."""
        op.finish(outputs, nodes)
        self._tensors.update([(tensor.value, tensor) for tensor in outputs])
        self._operations[op.name] = op

    def as_graph_def(self, from_version: int | None = None, add_shapes: bool = False) -> GraphDef:
        """The operations as records, which can be written.

        Args:
            from_version: leaves out so many operations, the oldest ones.
            add_shapes: no effect; shapes are always known.
        """
        del add_shapes
        found = self.get_operations()[from_version or 0 :]
        return GraphDef([op.node_def for op in found], self.ir)

    def add_control_edge(self, op: Operation, before: Operation) -> None:
        """Add a control dependency to an existing operation."""
        if before.graph is not self:
            raise GraphError(f"{before.name} is not an element of this graph")
        for node in op.nodes:
            for earlier in before.nodes:
                self.ir.add_control_edge(node, earlier)
        self.epoch += 1

    def __repr__(self) -> str:
        return f"<tf.Graph of {len(self._operations)} operations>"


def _is_name(name: Any) -> bool:
    return isinstance(name, str)


def _made(result: Any) -> tuple[tuple[Value, ...], tuple[Node, ...]]:
    """The results of a build function: a value, several, or a node without outputs."""
    if isinstance(result, Value):
        return (result,), ()
    if isinstance(result, Node):
        return result.outputs, (result,)
    return tuple(result), ()


def _distinct(nodes: Iterable[Node]) -> tuple[Node, ...]:
    return tuple(dict.fromkeys(nodes))


def _operation_of(element: Tensor | Operation) -> Operation:
    return element.op if isinstance(element, Tensor) else element


def created_here() -> str:
    """` (created at file.py:3)`: the user's line, for messages."""
    source = user_source()
    return "" if source is None else f" (created at {source})"


def fail(kind: type[WeftError], message: str) -> WeftError:
    """An error of class `kind` that names the user's line."""
    return kind(message + created_here())


# the default graph
_graphs: Defaults[Graph] = Defaults()


class _Default:
    graph = Graph()


def get_default_graph() -> Graph:
    """The innermost `as_default` graph of the thread, else the process's."""
    return _graphs.stack[-1] if _graphs.stack else _Default.graph


def computes_at_once(graph: Graph | None = None) -> bool:
    """Whether operations that are added to a graph, by default the default graph, are computed.

    That is so in eager execution, outside of all `as_default` blocks.
    """
    return (graph or get_default_graph()).at_once is not None and not _graphs.stack


def acts_in_order() -> bool:
    """Whether what a program does takes place in its order: at once, or in a traced function."""
    graph = get_default_graph()
    return graph.at_once is not None and (not _graphs.stack or graph.at_once.effects is not None)


def replace_default_graph(graph: Graph) -> None:
    """Use another graph as the process's default graph."""
    _Default.graph = graph


def emit(
    kind: str, inputs: Sequence[Tensor], build: Build, *args: Any, name: str, **options: Any
) -> Tensor:
    """The first output of an operation that is added to the default graph; see `Graph.emit`."""
    return get_default_graph().emit(kind, inputs, build, *args, name=name, **options).outputs[0]


def reset_default_graph() -> None:
    """Replace the process's default graph by an empty one.

    Raises:
        GraphError: called inside an `as_default` block.
    """
    if _graphs.stack:
        raise GraphError("reset_default_graph: not inside a `with graph.as_default()` block")
    _Default.graph = type(_Default.graph)()


@contextlib.contextmanager
def name_scope(
    name: str | None, default_name: str | None = None, values: Iterable[Any] = ()
) -> Iterator[str]:
    """Prefix names of operations built inside.

    Args:
        name: the scope; with `None`, `default_name`, or the root if there is none.
        default_name: used if `name` is `None`.
        values: their graph is used.
    """
    graph = graph_of(values)
    chosen = default_name if name is None else name  # neither is given: the root scope
    with within(graph, values), graph.name_scope(chosen) as scope:
        yield scope


def within(graph: Graph, values: Iterable[Any] = ()) -> contextlib.AbstractContextManager[Any]:
    """`graph.as_default()`; where operations are computed at once, only for symbolic values."""
    if computes_at_once(graph) and not any(map(is_symbolic, values)):
        return contextlib.nullcontext()
    return graph.as_default()


def is_symbolic(value: Any) -> bool:
    """Whether a value is a tensor that only a session computes."""
    return isinstance(value, Tensor) and not value.has_value and not value.is_ref


def graph_of(values: Iterable[Any] | None) -> Graph:
    """The graph of the first tensor among `values`, else the default graph.

    Raises:
        GraphError: two of them belong to different graphs.
    """
    found: Any = None
    here = get_default_graph()
    for value in values or () if here.capture is None else ():
        if isinstance(value, Tensor | Operation) or hasattr(value, "_as_graph_element"):
            if found is None:
                found = value
            elif value.graph is not found.graph:
                raise fail(GraphError, f"{value.name} and {found.name} belong to different graphs")
    return here if found is None else found.graph


__all__ = ["Graph", "get_default_graph", "name_scope", "reset_default_graph"]
