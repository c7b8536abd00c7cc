"""`EagerGraph`: a graph that computes its operations at once, unless it is made the default.

Inside `graph.as_default()`, and for operations of symbolic tensors, it is a graph as any other:
this is how Keras builds models, and trains them by `fit`. Variables belong to both: their values
are here or in the graph's session, wherever they were changed last.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weft import ops
from weft.eager.record.memory.array_value import leaf
from weft.eager.record.pending.state import trace
from weft.eager.tensor.autograd.autograd import grad
from weft.eager.tensor.dispatch import wrap
from weft.eager.tensor.handle import Handle
from weft.errors import WeftError
from weft.ir.dtype import DType
from weft.ir.graph import Graph as IRGraph
from weft.ir.graph import current_graph
from weft.ir.node import Node, Value
from weft.ir.shape import known
from weft.ops.boundary.state import assign, first_count
from weft.ops.boundary.state import variable as variable_op
from weft.ops.declaration import Op, op_of
from weft.ops.effect import has_effect
from weft.tf1.creation import zeros_like
from weft.tf1.eager.loop import scanned
from weft.tf1.eager.replay import replay
from weft.tf1.eager.tensor import (
    EagerTensor,
    Held,
    array_in,
    handle_in,
    held_array,
    lazy_in,
    variable_handle,
)
from weft.tf1.errors import translate
from weft.tf1.framework.convert import convert_to_tensor, emit_constant
from weft.tf1.framework.graph import Build, Graph, computes_at_once, is_symbolic
from weft.tf1.framework.tensor import Operation, Tensor
from weft.tf1.session.session import Session

if TYPE_CHECKING:
    from weft.tf1.control.tape import GradientTape
    from weft.tf1.variable.variable import Variable

_SYMBOLIC: Final = frozenset({"Placeholder", "VariableV2", "PlaceholderWithDefault"})
_PLAIN: Final = (bool, int, float, complex, str, bytes, type, DType, type(None))
MOST_TRACES: Final = 4096


class Scratch(IRGraph):
    """The nodes of one operation; values from outside join when they are used."""

    def add(self, op: str, inputs: tuple[Value, ...], *args: Any, **options: Any) -> Node:
        """Append a node."""
        for value in inputs:
            if value.node not in self and not value.node.inputs:
                self.join(value.node)
        return super().add(op, inputs, *args, **options)

    def join(self, node: Node) -> None:
        """Let a node from outside belong to this graph, too."""
        self._by_name[node.name] = node

    def __contains__(self, node: Node) -> bool:
        return self._by_name.get(node.name) is node


class EagerGraph(Graph):
    """A graph that computes its operations at once, unless it is made the default.

    Attributes:
        tapes: those that are recording, the innermost last.
        waiting: give values to variables that did not exist when a checkpoint was read; each says
            whether it is done.
        effects: of the function that is being traced, the operations that do more than compute.
    """

    effects: list[Operation] | None = None

    def __init__(self) -> None:
        super().__init__()
        self.at_once = self
        self.tapes: list[GradientTape] = []
        self.waiting: list[Callable[[], bool]] = []
        self._values: dict[str, Held] = {}
        self._counts: dict[str, int] = {}
        self._traces: dict[Any, tuple[list[Value], list[Node], list[Value]]] = {}
        self._emitted = 0
        self._session: Session | None = None

    @property
    def version(self) -> int:
        """Increases with every operation."""
        return super().version + self._emitted

    # operations
    def emit(
        self, kind: str, inputs: Sequence[Tensor], build: Build, *args: Any, name: str,
        attrs: Mapping[str, Any] | None = None, ref: bool = False, into: Operation | None = None,
        values: Sequence[Value] | None = None, **options: Any,
    ) -> Operation:  # fmt: skip
        """Compute an operation, or add it if one of its inputs is symbolic."""
        if not computes_at_once(self) or kind in _SYMBOLIC or any(map(is_symbolic, inputs)):
            given = [self._stand_in(t) for t in inputs]
            if values is not None:
                own = {t.used: s.used for t, s in zip(inputs, given, strict=True)}
                values = [own.get(v, v) for v in values]
            with self.as_default():
                start = len(self.ir.nodes)
                op = super().emit(
                    kind, given, build, *args, name=name, attrs=attrs, ref=ref, into=into,
                    values=values, **options,
                )  # fmt: skip
                if self.effects is not None and any(map(self._acts, self.ir.nodes[start:])):
                    self.effects.append(op)
                return op
        make: Any = getattr(ops, build) if isinstance(build, str) else build
        self._emitted += 1
        op = Operation.__new__(Operation) if into is None else into
        op.setup(self, kind, name.rstrip("/"), (), (), attrs or {})
        if kind == "Const" and args:  # not one that is filled
            op.finish([EagerTensor(op, 0, held_array(np.array(args[0])))], ())
            return op
        now, before = trace.now, trace.now.grad_mode
        now.grad_mode = bool(self.tapes)
        try:
            found = self._computed(make, inputs, values, args, options)
        except WeftError as error:
            known = translate(error)
            if known is error:
                raise
            raise known from error
        finally:
            now.grad_mode = before
        op.finish([EagerTensor(op, i, y) for i, y in enumerate(found)], ())
        return op

    def _computed(
        self, make: Any, inputs: Sequence[Tensor], values: Sequence[Value] | None,
        args: Sequence[Any], options: Mapping[str, Any],
    ) -> Sequence[Held]:  # fmt: skip
        used = [t.used for t in inputs] if values is None else list(values)
        key = _key(make, used, args, options)
        traced = None if key is None else self._traces.get(key)
        if traced is None:
            traced = self._traced(make, used, args, options)
            if key is not None:
                if len(self._traces) >= MOST_TRACES:
                    self._traces.clear()
                self._traces[key] = traced
        env: dict[Value, Held] = {}
        for value, tensor in zip(traced[0], inputs, strict=False):
            if isinstance(tensor, EagerTensor):
                env[value] = tensor.held
        replay(traced[1], env, self)
        return [env[y] for y in traced[2]]

    def _traced(
        self, make: Any, used: list[Value], args: Sequence[Any], options: Mapping[str, Any]
    ) -> tuple[list[Value], list[Node], list[Value]]:
        """The nodes that an operation adds, and the values that stand for inputs and outputs."""
        scratch = Scratch()
        with scratch.as_default():
            own = [_renamed(v, i) for i, v in enumerate(used)]
            for value in own:
                scratch.join(value.node)
            found = (
                make.node((*own, *args), dict(options))
                if isinstance(make, Op)
                else make(*own, *args, **options)
            )
        if isinstance(found, Value):
            outputs = [found]
        else:
            outputs = list(found.outputs if isinstance(found, Node) else found)
        return own, scratch.nodes, outputs

    def _stand_in(self, tensor: Tensor) -> Tensor:
        """A symbolic tensor for one that has its value."""
        if not isinstance(tensor, EagerTensor):
            return tensor
        if tensor.variable is not None and self.effects is None:
            return tensor.variable.snapshot
        if tensor.stand_in is None:
            with self.as_default(), self.name_scope(None), self.control_dependencies(None):
                tensor.stand_in = emit_constant(array_in(tensor.held), "Const")
        return tensor.stand_in

    # traced functions
    @property
    def control(self) -> tuple[Operation, ...]:
        """The control dependencies of operations built now: in a trace, the last effect is one."""
        last = self.effects[-1:] if self.effects and not self.in_body else ()
        return (*super().control, *last)

    def _acts(self, node: Node) -> bool:
        """Whether a node that was added does more than compute, at each run."""
        return not self.in_body and (op_of(node) is assign or has_effect(node))

    @contextlib.contextmanager
    def control_dependencies(self, control_inputs: Any) -> Iterator[None]:
        """Operations built inside run after these; what `None` clears is not part of a trace."""
        before = self.effects
        self.effects = None if control_inputs is None else before
        try:
            with super().control_dependencies(control_inputs):
                yield
        finally:
            self.effects = before

    @contextlib.contextmanager
    def tracing(self) -> Iterator[list[Operation]]:
        """What is computed inside is added to the graph; yields what does more than compute."""
        self.effects = found = list[Operation]()
        try:
            with self.as_default(), self.name_scope(None):
                yield found
        finally:
            self.effects = None

    def as_graph_element(
        self, obj: Any, allow_tensor: bool = True, allow_operation: bool = True
    ) -> Any:
        """The tensor or operation that `obj` is or names; symbolic, inside of the graph."""
        found = super().as_graph_element(obj, allow_tensor, allow_operation)
        return found if computes_at_once(self) else self._stand_in(found)

    def differentiate(
        self, targets: Sequence[Tensor], sources: Sequence[tuple[Any, Sequence[Held]]],
        given: Sequence[Any] | None, kept: bool, zero: bool,
    ) -> list[Tensor | None]:  # fmt: skip
        """Gradients of the sum of targets.

        Args:
            sources: tensors and variables, each with the values of it that were used.
            given: the initial gradients of the targets.
            kept: whether gradients may be asked for again.
            zero: whether a gradient is zeros where there is none.
        """
        ys = [convert_to_tensor(y) for y in targets]
        pairs = [
            (y.held, None if given is None else given[i])
            for i, y in enumerate(ys)
            if isinstance(y, EagerTensor)
        ]
        tracked = [(h, g) for h, g in pairs if isinstance(h, Handle) and h.lazy.tracked]
        xs = [h for _, held in sources for h in held if isinstance(h, Handle) and h.lazy.tracked]
        found: dict[int, Any] = {}
        if tracked and xs:
            starts = [self._start(h, g) for h, g in tracked]
            grads = grad([h for h, _ in tracked], xs, starts, kept, bool(self.tapes), True)
            found = {id(x): g for x, g in zip(xs, grads, strict=True)}
        return [self._gradient(source, held, found, zero) for source, held in sources]

    def _start(self, y: Handle, given: Any) -> Handle:
        if given is not None:
            tensor = convert_to_tensor(given)
            assert isinstance(tensor, EagerTensor)
            return handle_in(tensor.held)
        kind = y.lazy.type
        return wrap(leaf(np.ones(known(kind.shape), kind.dtype.numpy)))

    def _gradient(
        self, source: Any, held: Sequence[Held], found: Mapping[int, Any], zero: bool
    ) -> Tensor | None:
        parts = [found[id(h)] for h in held if found.get(id(h)) is not None]
        if not parts and zero:
            return zeros_like(source)
        if not parts:
            return None
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        op = Operation.__new__(Operation)
        op.setup(self, "Gradient", "gradient", (), (), {})
        return EagerTensor(op, 0, total)

    scanned = staticmethod(scanned)

    @contextlib.contextmanager
    def embedded(self, tensors: Sequence[Tensor], values: Sequence[Value]) -> Iterator[Graph]:
        """A graph, made the default, of the nodes that are being added now.

        Args:
            tensors: which stand for `values` inside; others are constants.
        """
        inner, known = Graph(), dict(zip(tensors, values, strict=True))
        inner.ir = current_graph()

        def capture(tensor: Tensor) -> Tensor:
            if tensor in known:
                return inner.wrap(known[tensor])
            assert isinstance(tensor, EagerTensor)
            return emit_constant(array_in(tensor.held), "Const")

        inner.capture = capture
        with inner.as_default():
            yield inner

    # variables
    def hold(self, variable: Variable, value: Tensor) -> None:
        """Give a new variable its first value."""
        assert isinstance(value, EagerTensor)
        self.save(variable.key, value.held)

    def take_waiting(self) -> None:
        """Give new variables the values that wait for them."""
        if self.waiting:
            now, self.waiting = self.waiting, []
            self.waiting += [read for read in now if not read()]

    def read(self, variable: Variable) -> EagerTensor:
        """The value of a variable."""
        held = self.load(variable.key)
        for tape in self.tapes:
            tape.see(variable, held)
        return EagerTensor(variable.op, 0, held, variable)

    def load(self, key: str) -> Held:
        """The value of a variable: here, or in the session."""
        found = self._values.get(key)
        if found is None:
            session = self._own_session()
            if key not in session.state:
                with self.as_default():  # the initializer may read others
                    self.session.run(self.keys_by_state(key).initializer)
            found = self._values[key] = variable_handle(leaf(np.array(session.state[key])))
            del session.state[key]
        return found

    def keys_by_state(self, key: str) -> Variable:
        """The variable with a key."""
        return next(v for v in self.keys.values() if getattr(v, "key", None) == key)

    def save(self, key: str, value: Held) -> None:
        """Set a variable."""
        self._values[key] = variable_handle(lazy_in(value))

    def end_step(self) -> None:
        """Let the next operation belong to the next program, after a step of an optimizer."""
        trace.now.limit = 0

    def count(self, key: str, start: int | None) -> int:
        """The next number of a counter."""
        found = self._counts[key] if key in self._counts else first_count(start)
        self._counts[key] = found + 1
        return found

    @property
    def session(self) -> Session:
        """The session of the graph, which has the values of variables from now on."""
        session = self._own_session()
        for key, value in self._values.items():
            session.state[key] = np.array(array_in(value))
        self._values.clear()
        return session

    def _own_session(self) -> Session:
        """The session, which has the values of variables that are not here."""
        if self._session is None:
            self._session = Session(graph=self)
        return self._session


def _renamed(value: Value, index: int) -> Value:
    """The same value of a node whose name is unique in an operation; variables as they are."""
    node = value.node
    if op_of(node) is variable_op:
        return value
    return Node(node.op, (), node.attrs, node.types, f"input_{index}").outputs[0]


def _key(make: Any, used: Sequence[Value], args: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """Under what an operation's nodes are kept; `None` if they depend on more than this."""
    made = make if isinstance(make, Op) else _frozen(make)
    kinds = [v if op_of(v.node) is variable_op else v.node.attrs.get("value") or v.type
             for v in used]  # fmt: skip
    given = (*args, *options.values())
    key = (made, *kinds, *options, *given, *map(type, given))
    try:
        hash(key)
    except TypeError:
        return None
    return None if made is None or any(isinstance(x, Value) for x in given) else key


def _frozen(x: Any, outer: tuple[FunctionType, ...] = ()) -> Any:
    """A key for what a function of Weft's computes, by what it refers to; `None` if it may change.

    Equal functions are made anew for each call: an update, of an optimizer's variable and slots.
    """
    if isinstance(x, _PLAIN):
        return type(x), x, str(x)  # -0.0 is not 0.0
    if isinstance(x, Op):
        return x
    if hasattr(x, "snapshot"):  # a variable, whose node stays the same
        return x.handle
    if isinstance(x, list | tuple):
        parts: Any = tuple([_frozen(each, outer) for each in x])
    elif any([x is function for function in outer]):  # one that refers to itself
        return x.__code__
    elif isinstance(x, FunctionType) and x.__module__.startswith("weft."):
        cells = [c.cell_contents for c in x.__closure__ or ()]
        more = (*cells, *(x.__defaults__ or ()), *(x.__kwdefaults__ or {}).values())
        parts = (x.__code__, *[_frozen(each, (*outer, x)) for each in more])
    else:
        return None
    return None if any([part is None for part in parts]) else parts
