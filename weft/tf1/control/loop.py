"""while_loop: the step runs a body as long as a condition holds."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import ops
from weft.errors import DTypeError, GraphError, ShapeError, TreeError
from weft.ir.dtype import bool_
from weft.ir.node import TensorType, Value
from weft.ir.shape import compatible
from weft.ops.call import Subgraph, inline, retyped, trace
from weft.ops.control.agreement import lines
from weft.tf1.control.dependency import stop_gradient
from weft.tf1.control.loop_extent import Extent, extent
from weft.tf1.control.region import (
    ITERATION_STRIDE,
    Join,
    Region,
    inside,
    of_any_shape,
    stand_in,
)
from weft.tf1.control.tensor_array import TensorArray, flow_of, gathered, has_final_shape, spread
from weft.tf1.elementwise.arithmetic import maximum as at_least
from weft.tf1.framework.convert import constant, convert_to_tensor, static_value
from weft.tf1.framework.dtypes import int32
from weft.tf1.framework.graph import Graph, computes_at_once, fail, get_default_graph, name_scope
from weft.tf1.framework.structure import flatten, outline, pack
from weft.tf1.framework.tensor import Tensor
from weft.tf1.framework.tensor_shape import as_shape
from weft.tf1.shaping.arrangement import shape


def while_loop(
    cond: Callable[..., Any], body: Callable[..., Any], loop_vars: Any,
    shape_invariants: Any = None, parallel_iterations: int = 10, back_prop: bool = True,
    swap_memory: bool = False, name: str | None = None, maximum_iterations: Any = None,
    return_same_structure: bool = False,
) -> Any:  # fmt: skip
    """Run `loop_vars = body(*loop_vars)` as long as `cond(*loop_vars)` holds.

    Args:
        loop_vars: nested tensors and tensor arrays; each keeps its type. One whose shape changes
            from turn to turn makes the step slow: it is interpreted.
            Growing arrays are allocated before the loop: if the number of iterations follows from
            constants, shapes and integer feeds, they get exactly the rows that are written; else
            `maximum_iterations` bounds their rows, and unwritten ones are zeros.
        shape_invariants: shapes in all iterations, if less specific than the initial ones; a
            dimension that is unknown there may change.
        parallel_iterations: accepted; iterations run one after the other.
        back_prop: if `False`, no gradient flows through the results.
        swap_memory: accepted.
        maximum_iterations: the maximum number of iterations.
        return_same_structure: keep a list of one tensor a list.

    Raises:
        TreeError: `body` returns another structure.
        ShapeError, DTypeError: it returns other types, or `cond` does not return a boolean scalar.
        GraphError: an array's size is not bounded.

    >>> import weft.tf1 as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     found = tf.while_loop(lambda i, x: i < 5, lambda i, x: [i + 1, x * 2.0], [0, 1.0])
    ...     print(session.run(found[1]))
    32.0
    """
    del parallel_iterations, swap_memory
    if not callable(cond) or not callable(body):
        raise fail(DTypeError, f"while_loop: expected two functions, got {cond!r} and {body!r}")
    leaves = flatten(loop_vars)
    if not leaves:
        raise fail(TreeError, "while_loop: expected loop_vars, got none")
    if computes_at_once():
        return _turn_by_turn(cond, body, loop_vars, maximum_iterations)
    with name_scope(name, "while", [x for x in leaves if not isinstance(x, TensorArray)]):
        found = _While(loop_vars, shape_invariants).run(cond, body, maximum_iterations)
    if not back_prop:
        found = gathered(found, [stop_gradient(flow_of(x)) for x in spread(found)])
    if len(found) == 1 and not return_same_structure:
        return found[0]
    return pack(loop_vars, found)


def _turn_by_turn(cond: Any, body: Any, loop_vars: Any, most: Any) -> Any:
    """The loop in eager execution."""
    several = isinstance(loop_vars, list | tuple)
    held: Any = loop_vars if several else [loop_vars]
    for _ in itertools.count() if most is None else range(int(most)):
        if not bool(cond(*held)):
            break
        found = body(*held)
        held = found if isinstance(found, list | tuple) else [found]
    return pack(loop_vars, [_value_of(x) for x in flatten(held)])


def _value_of(x: Any) -> Any:
    """A tensor array itself; other values as tensors."""
    return x if isinstance(x, TensorArray) else convert_to_tensor(x)


class _While:
    """A loop under construction.

    It carries the loop variables, the variables that it assigns, a counter if it draws random
    numbers, and the number of iterations if their maximum is a tensor.
    """

    def __init__(self, loop_vars: Any, invariants: Any) -> None:
        self.graph: Graph = get_default_graph()
        several = isinstance(loop_vars, list | tuple)
        self.structure: Any = loop_vars if several else [loop_vars]
        leaves = flatten(self.structure)
        self.given: list[Any] = [
            x if isinstance(x, TensorArray) else convert_to_tensor(x) for x in leaves
        ]
        self.held = spread(self.given)
        self.kinds = [_kind(x) for x in self.held]
        if invariants is not None:
            self._relax(_invariants(invariants, self.structure))

    def _relax(self, invariants: Sequence[Any]) -> None:
        """Relax shapes as `shape_invariants` says."""
        slots: list[Any] = []
        for told, x in zip(invariants, self.given, strict=True):
            slots += [None] * len(spread([x])) if isinstance(x, TensorArray) else [told]
        for i, told in enumerate(slots):
            if told is None:
                continue
            dims = as_shape(told).as_dims()
            if not compatible(dims, self.kinds[i].shape):
                raise fail(
                    ShapeError,
                    f"while_loop: the shape invariant {as_shape(told)} does not fit loop variable"
                    f" {i}, {self.held[i]}",
                )
            self.kinds[i] = TensorType(self.kinds[i].dtype, dims)

    def run(self, cond: Any, body: Any, maximum: Any) -> list[Any]:
        """The loop variables after the loop."""
        iteration, results = self._built(body, "body", self._outputs)
        test, _ = self._built(cond, "cond", _flag)
        most = None if maximum is None else static_value(maximum)
        limit = None if maximum is None else convert_to_tensor(maximum, dtype=int32)
        known = self._extent(iteration, test, limit)
        starts = self._starts(iteration, known)
        outputs: Sequence[Tensor]
        if known is not None and known.exact:
            outputs = self._emit_scan(iteration, test, starts, known.iterations)
        elif most is not None or limit is None:
            outputs = self._emit(iteration, test, starts, None, None if most is None else int(most))
        else:
            outputs = self._emit(iteration, test, starts, limit, None)
        if known is not None:
            outputs = _with_sizes(results, outputs, known)
        return gathered(results, outputs)

    def _extent(self, iteration: Region, test: Region, limit: Tensor | None) -> Extent | None:
        """What is known of the loop before it runs, if an array grows in it."""
        arrays = [i for i, x in enumerate(self.held) if isinstance(x, TensorArray) and x.grows]
        if not arrays:
            return None
        starts = [None if isinstance(x, TensorArray) else x for x in self.held]
        return extent(self.graph, iteration, test, starts, [i + 1 for i in arrays], limit)

    def _emit(
        self, iteration: Region, test: Region, starts: Sequence[Tensor], limit: Tensor | None,
        most: int | None,
    ) -> Sequence[Tensor]:  # fmt: skip
        """The operation, and the loop variables after it."""
        join = Join(self.graph, [iteration, test])
        now = join.now()
        extra = [constant(np.zeros((), np.uint64)).used] if join.draws else []
        extra += [constant(np.zeros((), np.int32)).used] if limit is not None else []
        outer = [*join.outer, *([] if limit is None else [limit.used])]

        def build(*values: Value) -> Any:
            inits = [*values, *now, *extra]
            types = [*self.kinds, *[v.type for v in (*now, *extra, *outer)]]
            layout = _Layout(len(values) + len(now), join.draws, limit is not None)
            condition = layout.condition(join.function(test, join.draws), types)
            inner = layout.body(join.function(iteration, join.draws), types)
            inits = self._as_kept(inits, outer, types, inner)
            found = ops.while_loop.all(
                *inits, *outer, condition=condition, body=inner, carried=len(inits), maximum=most
            )
            return join.after_assignments(found, len(values))

        return self.graph.emit("While", starts, build, name="Exit").outputs

    def _emit_scan(
        self, iteration: Region, test: Region, starts: Sequence[Tensor], iterations: Tensor
    ) -> Sequence[Tensor]:
        """The operation for a known number of iterations, which needs no test."""
        join = Join(self.graph, [iteration, test])
        now = join.now()
        extra = [constant(np.zeros((), np.uint64)).used] if join.draws else []

        def build(*values: Value) -> Any:
            inits = [*values[:-1], *now, *extra]
            types = [*self.kinds, *[v.type for v in (*now, *extra, *join.outer)]]
            layout = _Layout(len(values) - 1 + len(now), join.draws, False)
            inner = layout.body(join.function(iteration, join.draws), types)
            inits = self._as_kept(inits, join.outer, types, inner)
            found = ops.scan.all(
                *inits, *join.outer, body=inner, length=values[-1], carried=len(inits), mapped=0
            )
            return join.after_assignments(found, len(values) - 1)

        return self.graph.emit("While", [*starts, iterations], build, name="Exit").outputs

    def _as_kept(
        self, inits: Sequence[Value], outer: Sequence[Value], types: Sequence[TensorType],
        body: Subgraph,
    ) -> Sequence[Value]:  # fmt: skip
        """The initial values; without their shapes if these change, as `shape_invariants` allows.

        Arrays keep theirs.
        """
        given = [v.shape for v in (*inits, *outer)]
        if given == [t.shape for t in types]:
            return inits
        after = retyped(body, given).output_types
        if all([compatible(v.shape, t.shape) for v, t in zip(inits, after, strict=False)]):
            return inits
        kept = [isinstance(x, TensorArray) for x in self.held]
        free = zip(inits, types, kept, strict=False)
        wide = [v if keep else of_any_shape(v, t.shape) for v, t, keep in free]
        return [*wide, *inits[len(wide) :]]

    def _built(
        self, function: Callable[..., Any], scope: str, results: Callable[[Any], list[Any]]
    ) -> tuple[Region, list[Any]]:
        """A function built on placeholders of the loop variables."""
        first = len(self.graph.ir.nodes)
        with inside(self.graph), name_scope(scope):
            stands = [stand_in(self.graph, kind, "Identity") for kind in self.kinds]
            variables = gathered(self.given, stands, full=True)
            found = results(function(*pack(self.structure, variables)))
            outputs = [flow_of(x).used for x in spread(found)]
        return Region(self.graph, first, [s.value for s in stands], outputs), found

    def _outputs(self, found: Any) -> list[Any]:
        """The loop variables that the body returns."""
        several = list(found) if isinstance(found, list | tuple) else [found]
        leaves = flatten(several)
        if outline(leaves) != outline(flatten(self.structure)):
            raise fail(
                TreeError,
                "while_loop: expected the body to give as many tensors as loop_vars have, got\n"
                f"  {outline(self.structure)}\n  {outline(several)}\n",
            )
        made: list[Any] = []
        for x, given in zip(leaves, self.given, strict=True):
            plain = not isinstance(x, TensorArray) and not hasattr(x, "dtype")
            dtype = given.dtype.base_dtype if plain else None
            made.append(x if isinstance(x, TensorArray) else convert_to_tensor(x, dtype=dtype))
        after = [flow_of(x).value.type for x in spread(made)]
        if len(after) != len(self.kinds):
            raise fail(TreeError, "while_loop: expected the body to give arrays that grow back")
        pairs = list(zip(self.kinds, after, strict=True))
        same = all([a.dtype is b.dtype for a, b in pairs])
        if not same or not all([compatible(a.shape, b.shape) for a, b in pairs]):
            shown = lines([str(t) for t in self.kinds], [str(t) for t in after])
            raise fail(
                ShapeError if same else DTypeError,
                "while_loop: expected the body to give loop variables of the types that they had"
                f" (before | after):{shown}\n{_hint(same)}",
            )
        return made

    def _starts(self, iteration: Region, known: Extent | None) -> list[Tensor]:
        """The initial loop variables; arrays are allocated for what the body writes."""
        sizes = iter([] if known is None else known.sizes)
        found: list[Tensor] = []
        for x in self.held:
            if has_final_shape(x):
                found.append(flow_of(x))
            else:
                room = at_least(next(sizes), 1) if x.grows else None  # for a body that never runs
                found.append(x.padded(self._element(iteration, x), room))
        return found

    def _element(self, iteration: Region, x: TensorArray) -> Tensor:
        """The shape of an array's elements."""
        if x.element_shape.is_fully_defined():
            return constant(x.element_shape.as_list(), int32)
        if not x.is_empty:
            return shape(x.flow)[1:]
        if x.example is None:
            raise fail(GraphError, "while_loop: a TensorArray without elements; say element_shape=")
        return self._shape(iteration, x.example)

    def _shape(self, iteration: Region, element: Tensor) -> Tensor:
        """The shape that the first iteration would compute, without computing it."""
        region = iteration.part(range(len(self.held)), [element.used])
        join = Join(self.graph, [region])
        used = [flow_of(x) if has_final_shape(x) else constant(0.0) for x in self.held]
        now = join.now()

        def build(*values: Value) -> Value:
            return inline(join.function(region), [*values, *now, *join.outer])[0]

        return shape(self.graph.emit("Identity", used, build, name="element").outputs[0])


def _with_sizes(results: Sequence[Any], outputs: Sequence[Tensor], known: Extent) -> list[Tensor]:
    """A loop's outputs: growing arrays have their maximum number of elements."""
    rest, found = iter(known.sizes), list(outputs)
    for i, x in enumerate(spread(results)):
        if isinstance(x, TensorArray) and x.grows:
            size = next(rest)
            found[i] = outputs[i][:size]
            found[i + 1] = size if known.exact else outputs[i + 1]
    return found


class _Layout:
    """The layout of a loop's inputs, to wrap its functions.

    Args:
        held: the number of loop variables and variables.
        draws: whether a random counter follows.
        limited: whether the iteration counter follows, and its maximum comes last.
    """

    def __init__(self, held: int, draws: bool, limited: bool) -> None:
        self.held = held
        self.draws = draws
        self.limited = limited

    def _inner(self, xs: Sequence[Value]) -> list[Value]:
        """The arguments of the function itself."""
        at = self.held + self.draws
        return [*xs[:at], *xs[at + 1 : -1]] if self.limited else list(xs)

    def condition(self, function: Subgraph, types: Sequence[TensorType]) -> Subgraph:
        """The condition as a function of all that the loop carries."""

        def run(*xs: Value) -> Value:
            found = inline(function, self._inner(xs))[0]
            if not self.limited:
                return found
            return ops.logical_and(found, ops.less(xs[self.held + self.draws], xs[-1]))

        return trace(run, types)

    def body(self, function: Subgraph, types: Sequence[TensorType]) -> Subgraph:
        """The body as a function of all that the loop carries."""

        def run(*xs: Value) -> list[Value]:
            found = list(inline(function, self._inner(xs)))
            if self.draws:
                found.append(xs[self.held] + ITERATION_STRIDE)
            if self.limited:
                found.append(xs[self.held + self.draws] + 1)
            return found

        return trace(run, types)


def _hint(same: bool) -> str:
    return "A shape that changes from turn to turn is declared by shape_invariants=" if same else ""


def _kind(x: Any) -> TensorType:
    """The type of a loop variable, as far as it is known before the body is built."""
    if has_final_shape(x):
        return flow_of(x).value.type
    return TensorType(x.dtype.ir, None)


def _invariants(invariants: Any, structure: Any) -> list[Any]:
    """A shape, or `None`, for each leaf."""
    if not isinstance(structure, list | tuple):
        return [invariants]
    parts = invariants if isinstance(invariants, list | tuple) else [invariants]
    pairs = zip(parts, structure, strict=True)
    return [found for part, child in pairs for found in _invariants(part, child)]


def _flag(found: Any) -> list[Tensor]:
    flag = convert_to_tensor(found[0] if isinstance(found, list | tuple) else found)
    if flag.value.dtype is not bool_ or not compatible(flag.value.shape, ()):
        raise fail(DTypeError, f"while_loop: expected cond to give a boolean scalar, got {flag}")
    return [flag]
