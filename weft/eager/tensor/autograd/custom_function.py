"""Custom autograd functions: a forward and a backward function, both written with tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

from weft.eager.record.call.plan import plan_of, recall, remember
from weft.eager.record.pending.conjugate import conjugated
from weft.eager.record.pending.lazy import Lazy, begun
from weft.eager.record.pending.state import trace
from weft.eager.tensor.autograd.function_context import Context, tensor_of
from weft.eager.tensor.dispatch import cast, lazy_of, record, wrap
from weft.eager.tensor.handle import Handle
from weft.eager.tensor.interchange.conversion import zeros_of
from weft.errors import GradientError, ShapeError, UndefinedRuleError
from weft.ir.node import TensorType, Value, at_user_line
from weft.ir.shape import known, show
from weft.ops.declaration import REGISTRY, catalogue

_SUM_TO: Final = REGISTRY["sum_to"]


class Custom(Lazy):
    """A result of a custom function."""

    __slots__ = ("call",)
    call: Call


class Call:
    """What the backward pass of one call of a `Function` needs."""

    def __init__(
        self, function: type[Function], context: Context, inputs: Sequence[Lazy | None],
        types: Sequence[TensorType | None],
    ) -> None:  # fmt: skip
        self.function = function
        self.context = context
        self.types = types  # of each floating-point tensor argument
        self.inputs = inputs  # of each argument, its value if a gradient flows to it
        self.places: list[int | None] = []  # of each result of forward, its index among `raw`
        self.kinds: list[TensorType | None] = []  # of each that is a tensor
        self.raw: tuple[Lazy, ...] = ()  # differentiable results, as forward made them
        self.passed = False  # whether gradients flow to `raw`: a batching rule made it

    def pull(self, outputs: Mapping[int, Lazy], gs: Mapping[int, Lazy]) -> list[tuple[Lazy, Lazy]]:
        """Gradients of the inputs from those of the results."""
        name = f"{self.function.__name__}.backward"
        context = self.context
        # What forward returns unchanged was saved as an argument: its gradient is another.
        context.public = {r: y for i, y in outputs.items() if (r := self.raw[i]) not in self.inputs}
        try:
            seen = {i: conjugated(g) for i, g in gs.items()}
            reached = [None if p is None else seen.get(p) for p in self.places]
            found = self._rule()(context, *map(self._or_zeros, reached, self.kinds))
        finally:
            context.public = {}
        grads = found if isinstance(found, tuple) else (found,)
        if len(grads) < len(self.inputs) or any([g is not None for g in grads[len(self.inputs) :]]):
            raise GradientError.here(
                f"{name}: expected {len(self.inputs)} gradients, one for each argument of forward "
                f"(None where there is none), got {len(grads)}"
            )
        pairs = zip(self.inputs, grads, strict=False)
        return [
            (x, conjugated(_fitting(g, x, name, "gradient", "argument")))
            for x, g in pairs
            if x is not None and g is not None
        ]

    def _rule(self) -> Callable[..., Any]:
        """The backward function, defined as `backward` or `vjp`."""
        function = self.function
        rule: Callable[..., Any] | None = getattr(function, "backward", None)
        if rule is not None and function.vjp is not None:
            raise GradientError.here(
                f"{function.__name__}: has both backward and vjp, which are two names of one "
                f"function; define one"
            )
        rule = function.vjp if rule is None else rule
        if rule is None:
            raise _undefined(function, "backward(ctx, *gradients)")
        return rule

    def push(self, tangents: Sequence[Lazy | None]) -> dict[int, Lazy]:
        """Tangents of the results from those of the inputs.

        Raises:
            GradientError: the function has no `jvp`.
        """
        name = f"{self.function.__name__}.jvp"
        if self.function.jvp is None:
            raise UndefinedRuleError.here(
                f"{name}: is needed for derivatives in forward mode; define jvp(ctx, *tangents), "
                f"or differentiate in reverse mode"
            )
        self.context.forwards = True
        try:
            given = map(self._or_zeros, tangents, self.types)
            found = self.function.jvp(self.context, *given)
        finally:
            self.context.forwards = False
        moves = found if isinstance(found, tuple) else (found,)
        if len(moves) != len(self.places):
            raise GradientError.here(
                f"{name}: expected {len(self.places)} tangents, one for each result of forward "
                f"(None where there is none), got {len(moves)}"
            )
        for n, (p, t) in enumerate(zip(self.places, moves, strict=True)):
            if p is None and t is not None:
                raise GradientError.here(
                    f"{name}: expected None for result {n}, which is not differentiable, got a "
                    f"tangent"
                )
        return {
            p: _fitting(t, self.raw[p], name, "tangent", "result")
            for p, t in zip(self.places, moves, strict=True)
            if p is not None and t is not None
        }

    def _or_zeros(self, x: Lazy | None, kind: TensorType | None) -> Any:
        """A gradient as a tensor; a missing one as zeros, or as `None` if the user wants that."""
        if x is not None:
            return tensor_of(x)
        if kind is None or not self.context.materialize:
            return None
        return zeros_of(known(kind.shape), kind.dtype)

    def free(self) -> None:
        """Forget what was saved."""
        self.context.saved = None


def _fitting(g: Any, x: Lazy, name: str, kind: str, of: str) -> Lazy:
    found = cast(lazy_of(g, x.type.dtype), x.type.dtype)
    shape, wanted = known(found.type.shape), known(x.type.shape)
    if kind == "gradient" and shape != wanted and _broadcasts(wanted, shape):
        found = record(_SUM_TO, (found,), {"shape": wanted})[0]  # what was broadcast is summed
    if found.type.shape != x.type.shape:
        raise ShapeError.here(
            f"{name}: expected a {kind} of shape {show(x.type.shape)}, that of the {of}, "
            f"got {show(found.type.shape)}"
        )
    return found


def _broadcasts(shape: tuple[int, ...], wide: tuple[int, ...]) -> bool:
    """Whether one shape broadcasts to another."""
    ends = zip(reversed(shape), reversed(wide), strict=False)
    return len(shape) <= len(wide) and all([d in (1, e) for d, e in ends])


def _undefined(function: type[Function], rule: str) -> UndefinedRuleError:
    return UndefinedRuleError(
        f"{function.__name__}: expected a static method {rule}, got none; define it{at_user_line()}"
    )


class Function:
    """An operation with a custom gradient; subclass it and call `apply`.

    `forward(ctx, *args)` computes the results; `backward(ctx, *gradients)` (or `vjp`) returns a
    gradient for each argument, `None` if it has none. Alternatively `forward(*args)` takes no
    context, and `setup_context(ctx, inputs, output)` saves what backward needs. Both run without
    gradients, except that `create_graph=True` records the backward function. Forward mode needs
    `jvp(ctx, *tangents)`, which returns the tangents of the results.

    Under `vmap`, forward is traced for one example, unless there is a static method `vmap(info,
    in_dims, *args)`. That is the batching rule: it computes all `info.batch_size` examples, from
    arguments batched at the axes `in_dims` (`None` if not batched), and returns the results and
    their batch axes.

    In a traced function (`weft.func.jit`) both are recorded once and may read no values.

    Example:
        >>> import weft as wf
        >>> class Double(wf.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         return x * 2
        ...     @staticmethod
        ...     def backward(ctx, g):
        ...         return g * 2
        >>> x = wf.ones(3, requires_grad=True)
        >>> Double.apply(x).backward(wf.ones(3))
        >>> x.grad.tolist()
        [2.0, 2.0, 2.0]
    """

    forward: ClassVar[Callable[..., Any]]
    backward: ClassVar[Callable[..., Any]]
    setup_context: ClassVar[Callable[..., None] | None] = None
    vjp: ClassVar[Callable[..., Any] | None] = None
    jvp: ClassVar[Callable[..., Any] | None] = None
    vmap: ClassVar[Callable[..., Any] | None] = None
    generate_vmap_rule: ClassVar[bool] = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse: use the class itself, through `apply`."""
        name = type(self).__name__
        raise GradientError.here(f"{name}: call {name}.apply(...)")

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Call the operation.

        Raises:
            UndefinedRuleError: there is no forward function.
            GradientError: an argument marked as changed in place is not returned, or is a leaf that
                requires grad.
        """
        if getattr(cls, "forward", None) is None:
            raise _undefined(cls, "forward(ctx, *args)")
        inputs = [x.lazy if isinstance(x, Handle) and x.lazy.tracked else None for x in args]
        maps = trace.now.maps
        mapped = maps[-1].call(cls, args) if maps and cls.vmap is not None else None
        if mapped is not None and not mapped.differentiated:
            return mapped.found
        context = Context(tuple([x is not None for x in inputs]))
        now, before = trace.now, trace.now.grad_mode
        now.grad_mode = False  # not `no_grad()`: Ctrl-C at its exit could leave it on
        try:
            if mapped is not None:
                found = mapped.found
            else:
                found = cls.forward(*([] if cls.setup_context else [context]), *args)
            if cls.setup_context is not None:
                cls.setup_context(context, args, found)
        finally:
            now.grad_mode = before
        results = found if isinstance(found, tuple) else (found,)
        _check_dirty(cls.__name__, context.dirty, results)
        if not (trace.now.grad_mode and any(context.needs_input_grad)):
            return found
        kinds = [x.lazy.type if isinstance(x, Handle) else None for x in args]
        types = [t if t is not None and t.dtype.is_inexact else None for t in kinds]
        call = Call(cls, context, inputs, types)
        if mapped is not None:
            maps[-1].calls.append(call)
        results = _connected(call, results)
        return results if isinstance(found, tuple) else results[0]


def _check_dirty(name: str, dirty: Sequence[Any], results: Sequence[Any]) -> None:
    for x in dirty:
        if not any([x is y for y in results]):
            raise GradientError.here(
                f"{name}.forward: expected what mark_dirty names among its results; return it"
            )
        if trace.now.grad_mode and isinstance(x, Handle) and x.lazy.leaf is not None:
            raise GradientError.here(
                f"{name}.forward: a leaf that requires grad was changed in place; give it a clone()"
            )


def _connected(call: Call, found: Sequence[Any]) -> tuple[Any, ...]:
    """The results of forward, connected to the custom gradient."""
    passed: list[Any] = []
    for y in found:
        flows = isinstance(y, Handle) and y.lazy.type.dtype.is_inexact
        flows = flows and not any([y is x for x in call.context.constants])
        call.places.append(len(passed) if flows else None)
        call.kinds.append(y.lazy.type if isinstance(y, Handle) else None)
        if flows:
            passed.append(y)
    if not passed:
        return tuple(found)
    call.raw = tuple([y.lazy for y in passed])
    sources = tuple([x for x in call.inputs if x is not None])
    lazies = _record(call, sources)
    for level in reversed(trace.now.duals):
        level.follow(call, lazies)
    dirty = call.context.dirty
    shown: dict[int, Any] = {}  # what forward returns twice is one result
    for y, p in zip(found, call.places, strict=True):
        if id(y) not in shown:
            new = y if p is None else _shown(y, lazies[p], any([y is x for x in dirty]))
            shown[id(y)] = new
    return tuple([shown[id(y)] for y in found])


def _shown(y: Any, lazy: Lazy, dirty: bool) -> Any:
    if not dirty:
        return wrap(lazy, y)
    y.replace(lazy)
    return y


def _same(values: Sequence[Value]) -> list[Value]:
    """The values as new ones: a result may be an argument, whose tangent differs."""
    return [catalogue.identity(x) for x in values]


def _record(call: Call, sources: tuple[Lazy, ...]) -> tuple[Custom, ...]:
    """Record that the results of `call`, which forward made, depend on `sources`."""
    types = tuple([y.type for y in call.raw])
    key = ("custom", call.function.__name__, tuple(map(id, types)), len(sources))
    count: Final = len(types)
    plan = recall(key)
    if plan is None:
        name = call.function.__name__
        plan = plan_of(name, types, types, lambda *values: _same(values[:count]))
        plan.pattern.variable = True
        remember(key, plan)
    record = trace.now.record(plan, (*call.raw, *sources))[0].record
    assert record is not None
    outputs: list[Custom] = []
    for i, kind in enumerate(types):
        lazy = begun(Custom(), kind, record, i, True)
        lazy.call = call
        outputs.append(lazy)
    record.outputs = outputs
    return tuple(outputs)
