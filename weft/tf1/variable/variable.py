"""Variables: values that a session keeps between runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from weft import ops
from weft.documentation import Reads
from weft.errors import ArgumentError, DTypeError, GraphError, ShapeError
from weft.ir.node import Value
from weft.ir.shape import compatible, show
from weft.ops.resource.spec import key_in
from weft.tf1.framework.collection import GraphKeys
from weft.tf1.framework.convert import convert_to_tensor, is_tensor
from weft.tf1.framework.default_graph import control_dependencies
from weft.tf1.framework.dtypes import DType, as_dtype
from weft.tf1.framework.graph import Graph, computes_at_once, fail, get_default_graph, name_scope
from weft.tf1.framework.indexed_slices import IndexedSlices
from weft.tf1.framework.tensor import HOOKS, OPERATORS, Operation, Overloads, Tensor
from weft.tf1.framework.tensor_shape import TensorShape
from weft.tf1.variable.initial_value import declared_shape, initial_tensor
from weft.tf1.variable.probe import make_probe
from weft.tf1.variable.slice_info import SaveSliceInfo

__all__ = ["Variable", "scatter_add", "scatter_sub", "scatter_update"]


class Variable(Overloads):
    """A tensor whose value a session keeps.

    Args:
        initial_value: anything that converts to a tensor, or a function that returns it.
        trainable: whether optimizers change it by default.
        collections: collections to add it to; `[GraphKeys.GLOBAL_VARIABLES]` by default.
        validate_shape: require an initial value of known shape.
        caching_device: the device to read it on, as of `tf.device`; its own by default.
        name: the name of its operation.
        dtype: its element type; that of the initial value by default.
        expected_shape: accepted for old programs.
        constraint: applied by optimizers after each update.
        use_resource: accepted; reads are well ordered either way.
        shape: its shape, if it differs from the initial value's static shape.
    """

    SaveSliceInfo = SaveSliceInfo

    def __init__(
        self, initial_value: Any = None, trainable: bool | None = None,
        collections: Sequence[str] | None = None, validate_shape: bool = True,
        caching_device: Any = None, name: str | None = None, variable_def: Any = None,
        dtype: Any = None, expected_shape: Any = None, import_scope: str | None = None,
        constraint: Callable[[Any], Any] | None = None, use_resource: bool | None = None,
        synchronization: Any = None, aggregation: Any = None, shape: Any = None,
    ) -> None:  # fmt: skip
        if variable_def is not None:
            raise fail(ArgumentError, "Variable: expected no variable_def; give initial_value=")
        del expected_shape, import_scope, use_resource
        del synchronization, aggregation
        if initial_value is None:
            raise fail(GraphError, "Variable: expected an initial_value, got None")
        keys = [GraphKeys.GLOBAL_VARIABLES] if collections is None else list(collections)
        if isinstance(collections, str):
            raise fail(GraphError, f"Variable: expected a list of collections, got {collections!r}")
        self._trainable = trainable is None or bool(trainable)
        if self._trainable and GraphKeys.TRAINABLE_VARIABLES not in keys:
            keys.append(GraphKeys.TRAINABLE_VARIABLES)
        self._constraint = constraint
        self._caching_device = caching_device
        self._validate_shape = validate_shape
        self._save_slice_info: SaveSliceInfo | None = None
        self._reads: list[Tensor] = []
        self._probe: tuple[Tensor, Tensor] | None = None
        with control_dependencies(None):
            self._build(initial_value, name, None if dtype is None else as_dtype(dtype), shape)
        self._graph.add_to_collections(keys, self)

    def _build(self, initial: Any, name: str | None, dtype: DType | None, shape: Any) -> None:
        values = [initial] if is_tensor(initial) else []
        with name_scope(name, "Variable", values) as scope:
            graph = self._graph = get_default_graph()
            late, start = callable(initial) and not values, len(graph.ir.nodes)
            with graph.grouped(scope[:-1] if late else None):
                self._initial_value = initial_tensor(initial, dtype)
                made = graph.ir.nodes[start:] if late else []
                self._shape = declared_shape(self._initial_value, shape, self._validate_shape)
                self._dtype = self._initial_value.dtype.base_dtype
                if self._dtype.ir.is_hosted:
                    text = f"Variable: expected numbers, got {self._initial_value}"
                    raise fail(DTypeError, f"{text}; a lookup table can hold texts")
                self._make_handle(scope)
            self._given = _guarded(initial, self._initial_value)
            graph.ir.colocate(made, [self._handle.node])
            self._initializer_op: Operation | None = None
            if computes_at_once(graph):
                graph.at_once.hold(self, self._given)
            else:
                self._initializer_op = _assign(self, self._given, "Assign").op
            with graph.as_default(), self._where_it_is_read():
                self._snapshot = self._read("read", latest=False)
        self._variable.rebind(self._snapshot.value)

    def _where_it_is_read(self) -> AbstractContextManager[None]:
        if self._caching_device is None:
            return self._graph.colocate_with(self.op)
        return self._graph.device(self._caching_device)

    def _make_handle(self, scope: str) -> None:
        op = self._graph.emit(
            "VariableV2", (), lambda: self._state_node(scope[:-1]), name=scope, ref=True,
            attrs={
                "shape": self._shape, "dtype": self._dtype, "container": self._graph.container_name,
                "shared_name": "",
            },
        )  # fmt: skip
        self._variable = op.outputs[0]
        self._handle = self._variable.value
        self._graph.keys[op.name] = self

    def _state_node(self, name: str) -> Value:
        key = key_in(self._graph.container_name, name)
        with self._graph.ir.prefix(""):
            return ops.variable(
                key=key, dtype=self._dtype.ir, shape=self._shape.as_dims(), name=name
            )

    def _read(self, name: str, latest: bool) -> Tensor:
        op = self._graph.emit(
            "Identity", [self._variable], "read", name=name, values=[self._handle], latest=latest
        )
        self._reads.append(op.outputs[0])
        return op.outputs[0]

    # properties
    name = Reads[str]("_variable.name", "The name of its reference, such as `v:0`.")
    op = Reads[Operation]("_variable.op", "The operation that holds it.")
    graph = Reads[Graph]("_graph", "The graph that holds it.")
    dtype = Reads[DType]("_variable.dtype", "The element type, as a reference (`float32_ref`).")
    shape = Reads[TensorShape]("_shape", "The shape.")

    def get_shape(self) -> TensorShape:
        """The shape."""
        return self._shape

    device = Reads[str]("op.device", "The requested device.")
    trainable = Reads[bool]("_trainable", "Whether optimizers change it by default.")
    constraint = Reads[Callable[[Any], Any] | None](
        "_constraint", "The projection that optimizers apply after each update."
    )

    @property
    def initializer(self) -> Operation:
        """The operation that assigns the initial value."""
        if self._initializer_op is None:
            with self._graph.as_default():
                self._initializer_op = _assign(self, self._given, "Assign").op
        return self._initializer_op

    def start_from(self, value: Any) -> None:
        """Let `initializer` assign this value instead."""
        with name_scope(""):
            given = convert_to_tensor(value, self._dtype, name=f"{self.op.name}/restored")
            self._initializer_op = _assign(self, given, "Assign").op

    initial_value = Reads[Tensor]("_initial_value", "The tensor that it is initialized with.")
    handle = Reads[Value]("_handle", "The node of Weft's graph that stands for it.")

    @property
    def key(self) -> str:
        """Its key in a session's state."""
        return str(self._handle.node.attrs["key"])

    @property
    def _shared_name(self) -> str:
        return self.op.name

    @property
    def reads(self) -> list[Tensor]:
        """All tensors through which the graph reads it."""
        return list(self._reads)

    @property
    def slice_info(self) -> SaveSliceInfo | None:
        """Its place in a partitioned variable, as a part of which it is saved."""
        return self._save_slice_info

    @slice_info.setter
    def slice_info(self, info: SaveSliceInfo) -> None:
        self._save_slice_info = info

    def _set_save_slice_info(self, save_slice_info: SaveSliceInfo) -> None:
        self._save_slice_info = save_slice_info

    def _get_save_slice_info(self) -> SaveSliceInfo | None:
        return self._save_slice_info

    @property
    def snapshot(self) -> Tensor:
        """What the graph reads: its value at the start of a run."""
        return self._snapshot

    # its value
    def numpy(self) -> Any:
        """The value, in eager execution.

        Raises:
            DTypeError: a session has the value.
        """
        if self._graph.at_once is None:
            raise DTypeError(f"{self.name}: numpy() needs eager execution; use eval()")
        return self._graph.at_once.read(self).numpy()

    def value(self) -> Tensor:
        """The value at the start of the step, or after the current control dependencies."""
        return self._as_graph_tensor()

    def read_value(self) -> Tensor:
        """A new operation that reads it, after the current control dependencies."""
        if computes_at_once(self._graph):
            return self._graph.at_once.read(self)
        with self._graph.as_default():
            return self._read("read", latest=False)

    def latest(self) -> Tensor:
        """The value after all assignments of the step so far, on which updates build."""
        if computes_at_once(self._graph):
            return self._graph.at_once.read(self)
        with self._graph.as_default():
            return self._read("read", latest=True)

    def initialized_value(self) -> Tensor:
        """The value if it has one, else the initial value: for initializing other variables."""
        if computes_at_once(self._graph):
            return self._graph.at_once.read(self)
        flag, held = self.probe()
        with self._graph.as_default(), control_dependencies(None), name_scope("cond"):
            op = self._graph.emit(
                "Merge", [flag, held, self._initial_value], "select", name="Merge"
            )
        return op.outputs[0]

    def probe(self) -> tuple[Tensor, Tensor]:
        """Whether it is initialized, and the value (or zeros): fed by the session itself."""
        if self._probe is None:
            kind, dims = self.dtype.base_dtype, self.shape.as_dims()
            self._probe = make_probe(self.graph, self.op, self.key, kind, dims)
        return self._probe

    def eval(self, session: Any = None) -> Any:
        """The value in `session` or the default session."""
        if computes_at_once(self._graph):
            return self.numpy()
        return self._variable.eval(session=session)

    def load(self, value: Any, session: Any = None) -> None:
        """Set the value in `session` or the default session.

        Raises:
            ShapeError: `value` has another shape.
        """
        if computes_at_once(self._graph):
            self.assign(value)
            return
        session = HOOKS.default_session() if session is None else session
        if session is None:
            raise GraphError("load: there is no default session; pass load(value, session)")
        session.run(self.initializer, {self._given: value})

    def assign(
        self, value: Any, use_locking: bool = False, name: str | None = None,
        read_value: bool = True,
    ) -> Any:  # fmt: skip
        """Set the value; returns the new value."""
        del use_locking
        found = _assign(self, value, name or "Assign")
        return found if read_value else found.op

    def assign_add(
        self, delta: Any, use_locking: bool = False, name: str | None = None,
        read_value: bool = True,
    ) -> Any:  # fmt: skip
        """Add `delta`; returns the new value."""
        del use_locking
        found = _assign_by(self, delta, "AssignAdd", "add", name)
        return found if read_value else found.op

    def assign_sub(
        self, delta: Any, use_locking: bool = False, name: str | None = None,
        read_value: bool = True,
    ) -> Any:  # fmt: skip
        """Subtract `delta`; returns the new value."""
        del use_locking
        found = _assign_by(self, delta, "AssignSub", "subtract", name)
        return found if read_value else found.op

    def count_up_to(self, limit: int) -> Tensor:
        """The value, which is then one more; at the limit, `OutOfRangeError`."""
        return OPERATORS["count_up_to"](self, limit)

    def scatter_add(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: Any = None):
        """Add rows."""
        return scatter_add(self, sparse_delta.indices, sparse_delta.values, use_locking, name)

    def scatter_sub(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: Any = None):
        """Subtract rows."""
        return scatter_sub(self, sparse_delta.indices, sparse_delta.values, use_locking, name)

    def scatter_update(
        self, sparse_delta: IndexedSlices, use_locking: bool = False, name: Any = None
    ):
        """Set rows."""
        return scatter_update(self, sparse_delta.indices, sparse_delta.values, use_locking, name)

    def set_shape(self, shape: Any) -> None:
        """Refine the static shape."""
        self._shape = self._shape.merge_with(shape)
        self._snapshot.set_shape(shape)

    def _as_graph_tensor(self) -> Tensor:
        if computes_at_once(self._graph):
            return self._graph.at_once.read(self)
        if not self._graph.control and not self._graph.in_body:
            return self._snapshot
        scope = self._graph.name_scope(self.op.name + "/")
        with self._graph.as_default(), scope, self._where_it_is_read():
            return self._read("read", latest=False)

    def _as_graph_element(self) -> Tensor:
        return self._variable

    def _ref(self) -> Tensor:
        return self._variable

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        if computes_at_once(self._graph):
            return self._graph.at_once.read(self).__array__(dtype, copy)
        return super().__array__()

    def __int__(self) -> int:
        return int(self.numpy())

    def __float__(self) -> float:
        return float(self.numpy())

    def __iter__(self) -> Any:
        if computes_at_once(self._graph):
            return iter(self._graph.at_once.read(self))
        raise DTypeError(f"{self.name}: a variable cannot be iterated over; use tf.unstack")

    def __repr__(self) -> str:
        kind, value = self.dtype.name, ""
        if computes_at_once(self._graph):
            kind, value = self.dtype.base_dtype.name, f", numpy={self.numpy()!r}"
        return f"<tf.Variable '{self.name}' shape={self._shape} dtype={kind}{value}>"


RefVariable = Variable


def _guarded(initial: Any, value: Tensor) -> Tensor:
    """The initial value; of another variable, its initial value as long as that has no other."""
    return initial.initialized_value() if isinstance(initial, Variable) else value


# assignments
def variable_of(ref: Any, kind: str) -> Variable:
    """The variable of a variable or of a tensor that references it.

    Raises:
        DTypeError: it is not a variable.
    """
    if isinstance(ref, Variable):
        return ref
    if isinstance(ref, Tensor):
        name = ref.op.name
        found = ref.graph.keys.get(name)
        if isinstance(found, Variable):
            return found
        source = next((t for t in ref.op.inputs if t.is_ref), None)
        if source is not None:
            return variable_of(source, kind)
    raise fail(DTypeError, f"{kind}: expected a variable, got {ref!r}")


def _assign(variable: Variable, value: Any, name: str, validate_shape: bool = True) -> Tensor:
    with name_scope(name, None, [variable._ref()]) as scope:  # pyright: ignore[reportPrivateUsage]
        new = convert_to_tensor(value, variable.dtype.base_dtype, name="value")
        _check_shape("Assign", variable, new)
        inputs = [variable._ref(), new]  # pyright: ignore[reportPrivateUsage]
        values = [variable.handle, new.used]
        op = variable.graph.emit("Assign", inputs, "assign", name=scope, ref=True, values=values)
    return op.outputs[0]


def _check_shape(kind: str, variable: Variable, value: Tensor) -> None:
    expected = variable.shape.as_dims()
    if not compatible(expected, value.used.shape):
        raise fail(
            ShapeError,
            f"{kind}: expected a value of shape {show(expected)} for {variable.name}, "
            f"got {show(value.used.shape)}",
        )


def _update(
    variable: Variable, kind: str, combine: Any, inputs: list[Tensor], scope: str
) -> Tensor:
    """Assigns `combine` of the value after all assignments so far, and of inputs."""

    def build(_: Value, *values: Value) -> Value:
        return ops.assign(variable.handle, combine(ops.read(variable.handle, latest=True), *values))

    ref = variable._ref()  # pyright: ignore[reportPrivateUsage]
    op = variable.graph.emit(kind, [ref, *inputs], build, name=scope, ref=True)
    return op.outputs[0]


def _assign_by(variable: Variable, delta: Any, kind: str, op: str, name: str | None) -> Tensor:
    with name_scope(name, kind, [variable._ref()]) as scope:  # pyright: ignore[reportPrivateUsage]
        value = convert_to_tensor(delta, variable.dtype.base_dtype, name="value")
        _check_shape(kind, variable, value)
        return _update(variable, kind, getattr(ops, op), [value], scope)


def _scatter(kind: str, combine: Any, ref: Any, indices: Any, updates: Any, name: Any) -> Tensor:
    variable = variable_of(ref, kind)
    with name_scope(name, kind, [variable._ref()]) as scope:  # pyright: ignore[reportPrivateUsage]
        where = convert_to_tensor(indices, name="indices")
        rows = convert_to_tensor(updates, variable.dtype.base_dtype, name="updates")
        return _update(variable, kind, combine, [where, rows], scope)


def scatter_add(ref: Any, indices: Any, updates: Any, use_locking: Any = None, name: Any = None):
    """Add `updates[i]` to row `indices[i]` of `ref`; equal indices add up."""
    del use_locking
    return _scatter("ScatterAdd", ops.scatter_add, ref, indices, updates, name)


def scatter_sub(ref: Any, indices: Any, updates: Any, use_locking: Any = None, name: Any = None):
    """Subtract `updates[i]` from row `indices[i]` of `ref`; equal indices add up."""
    del use_locking
    negated = -convert_to_tensor(updates, variable_of(ref, "ScatterSub").dtype.base_dtype)
    return _scatter("ScatterSub", ops.scatter_add, ref, indices, negated, name)


def scatter_update(ref: Any, indices: Any, updates: Any, use_locking: Any = None, name: Any = None):
    """Set row `indices[i]` of `ref` to `updates[i]`; indices must be unique."""
    del use_locking
    return _scatter("ScatterUpdate", ops.scatter_set, ref, indices, updates, name)
