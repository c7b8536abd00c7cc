"""jit: traces a function once per signature, so that its Python code runs only once."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Final, NamedTuple

from weft.eager.record.call.plan import Plan
from weft.eager.record.pending.global_mark import changes
from weft.eager.record.pending.lazy import Lazy, Tracer
from weft.eager.record.pending.state import trace
from weft.eager.record.recognition.traced_call import CapturedState
from weft.eager.tensor.autograd.anomaly import check_gradients
from weft.eager.tensor.autograd.tracing import Traced, subgraph_plan
from weft.eager.tensor.dispatch import lazy_of
from weft.eager.tensor.dtype.promotion import get_default_dtype
from weft.eager.tensor.handle import Handle
from weft.errors import TracerError
from weft.func.function import Arguments, Function, finished, take_apart, trace_function
from weft.func.ranks.axis import sizes
from weft.ir.node import Node, TensorType
from weft.ops.declaration.family import REGION, family_of, inner_nodes
from weft.ops.refusal import REFUSABLE, check_function, refuse


@dataclass
class _Entry:
    """A function traced for one signature."""

    plan: Plan
    captured: tuple[tuple[Lazy, Callable[[], Any] | None], ...]  # with the tensor that holds it
    traced: Traced
    modes: dict[Any, bool]  # the modules that it calls, with their training modes
    types: tuple[TensorType, ...]  # of the arguments; their identities are part of its key
    loops: bool  # whether it has loops or branches
    last: CapturedState | None = None
    seen: object | None = None  # `changes.modes` when they were last checked

    def holds(self) -> bool:
        """Whether its modules are in the modes in which it was traced."""
        mark = changes.modes
        if self.seen is mark:
            return True
        if not all([module.training is mode for module, mode in self.modes.items()]):
            return False
        if all(["training" in vars(module) for module in self.modes]):  # otherwise a property
            self.seen = mark
        return True

    def captured_state(self) -> CapturedState:
        """The current captured values."""
        last = self.last
        if last is None or not last.holds:
            last = self.last = CapturedState(self.captured)
        return last


def _traced(function: Function, apart: Arguments) -> _Entry:
    """The traced function for arguments like these."""
    now = trace.now
    outer, now.called = now.called, {}
    try:
        traced = trace_function(function, apart)
        modes = now.called
    finally:
        now.called = outer
    owners = tuple([(x, x.owner) for x in traced.captured])
    types = tuple([x.type for x in apart.lazies])
    loops = _has_loops(traced.function.nodes)
    return _Entry(subgraph_plan(traced.function), owners, traced, modes, types, loops)


def _has_loops(nodes: Sequence[Node]) -> bool:
    """Whether loops or branches are among nodes, or in functions that these call."""
    return any([family_of(n).family == REGION or _has_loops(inner_nodes(n)) for n in nodes])


class _Last(NamedTuple):
    """A call with tensors only."""

    entry: _Entry
    kinds: tuple[type, ...]
    types: tuple[TensorType, ...]
    mode: Hashable


def _mode() -> Hashable:
    """The other parts of the key of a trace."""
    now = trace.now
    return now.grad_mode, now.autocast, get_default_dtype(), sizes()


_Entries = dict[Any, list[_Entry]]  # of a signature, one per set of modes
_traces: Final = weakref.WeakKeyDictionary[Function, dict[Any, _Entries]]()


def _entries_of(function: Function, positions: frozenset[int], names: frozenset[str]) -> _Entries:
    """The traces of a function, which all of its `jit` share: a loop may say `jit(f)(x)`."""
    if not isinstance(function, FunctionType):  # other callables may be equal, and yet differ
        return {}
    return _traces.setdefault(function, {}).setdefault((positions, names), {})


def _is_pending(plan: Plan) -> bool:
    """Whether a call with a plan is pending, and no gradient may flow through it."""
    calls = [record for record in trace.now.pending if record.plan is plan]
    return any([not any([y.tracked for y in record.outputs]) for record in calls])


class Jitted:
    """A function that is traced at its first call with each signature.

    Later calls record one node: Python side effects such as printing happen only while it is
    traced. It is traced again when a module that it calls switches between training and evaluation.
    Outside tensors are read at each call, and in-place changes of them and of arguments are made at
    each call.
    """

    def __init__(self, function: Function, positions: Sequence[int], names: Sequence[str]) -> None:
        check_function(function, "jit")
        functools.update_wrapper(self, function)
        self.function = function
        self._positions = frozenset(positions)
        self._names = frozenset(names)
        self._entries = _entries_of(function, self._positions, self._names)
        self._method: Jitted | None = None
        self._last: _Last | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function.

        Raises:
            TracerError: it reads the value of a traced argument, or a static argument is not
                hashable.
        """
        try:
            again = self._again(args) if not kwargs else None
            entry, lazies, tensors = again or self._entry(args, kwargs)
            if trace.now.called is not None:
                trace.now.called.update(entry.modes)
            captured = entry.captured_state()
            if entry.loops and not trace.now.depth and _is_pending(entry.plan):
                trace.now.limit = 0  # steps with loops are planned one by one, not many as one
            found = trace.now.record(entry.plan, (*lazies, *captured.values))
            record = found[0].record if found else None
            # If others may write to a captured array, a copy of it was recorded.
            if record is not None and record.inputs[len(lazies) :] == captured.values:
                record.captured = captured
            if trace.now.anomaly:
                check_gradients(found, only=False)
            return finished(entry.traced, found, tensors)
        except REFUSABLE as error:
            return refuse(error, getattr(self, "__name__", "jit"), self.function, args, kwargs)

    def _again(
        self, args: tuple[Any, ...]
    ) -> tuple[_Entry, tuple[Lazy, ...], Sequence[Any]] | None:
        """The entry of the last call and the arguments, if these have the same signature."""
        last = self._last
        if last is None or len(args) != len(last.types) or last.mode != _mode():
            return None
        if not last.entry.holds():
            return None
        lazies: list[Lazy] = []
        for x, kind, type_ in zip(args, last.kinds, last.types, strict=True):
            lazy = lazy_of(x) if type(x) is kind else None
            if lazy is None or lazy.type is not type_:
                return None
            lazies.append(lazy)
        return last.entry, tuple(lazies), args

    def _entry(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[_Entry, tuple[Lazy, ...], Sequence[Any]]:
        """The trace for arguments like these, and the tensors in them, with their values."""
        fixed = tuple([a for i, a in enumerate(args) if i in self._positions])
        named = tuple([(k, v) for k, v in kwargs.items() if k in self._names])
        free = [a for i, a in enumerate(args) if i not in self._positions]
        apart = take_apart((free, {k: v for k, v in kwargs.items() if k not in self._names}))
        types = tuple([id(x.type) for x in apart.lazies])
        kinds = tuple([type(x) for x in apart.likes])
        mode = _mode()
        key = (apart.tree, types, kinds, apart.static, fixed, named, len(args), mode)
        entry = self._find(key)
        if entry is None:
            entry = _traced(self._bound(fixed, dict(named)), apart)
            if not any(isinstance(x, Tracer) for x in entry.traced.captured):
                self._entries.setdefault(key, []).append(entry)
        plain = key in self._entries and not kwargs and not fixed
        tensors = plain and all([isinstance(x, Handle) for x in args])
        same = tuple([x.type for x in apart.lazies])
        self._last = _Last(entry, kinds, same, mode) if tensors else None
        return entry, apart.lazies, apart.likes

    def _find(self, key: Any) -> _Entry | None:
        try:
            found = self._entries.get(key, ())
        except TypeError as error:
            raise TracerError.here(
                f"jit: expected static arguments that can be hashed: {error}"
            ) from None
        return next((entry for entry in found if entry.holds()), None)

    def _bound(self, fixed: tuple[Any, ...], named: dict[str, Any]) -> Function:
        """The function of the traced arguments alone."""

        def whole(*free: Any, **kwargs: Any) -> Any:
            rest, own = iter(free), iter(fixed)
            count = len(free) + len(fixed)
            args = [next(own) if i in self._positions else next(rest) for i in range(count)]
            return self.function(*args, **kwargs, **named)

        return whole

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Bind as a method: the instance is argument 0, and static."""
        if instance is None:
            return self
        if self._method is None:
            self._method = Jitted(self.function, [0, *self._positions], list(self._names))
        return functools.partial(self._method, instance)


def jit(
    fun: Function | None = None,
    *,
    static_argnums: int | Iterable[int] = (),
    static_argnames: str | Iterable[str] = (),
) -> Any:
    """Trace `fun` once for each signature of its arguments, then call it as one node.

    Arguments may be nested. Tensors, arrays and numbers in them are traced. Strings and booleans
    are static, and so are the arguments named by `static_argnums` and `static_argnames`. Those of a
    method are counted with the instance, which is argument 0 and always static.

    >>> import weft as wf
    >>> @jit
    ... def scaled(x, factor):
    ...     print("traced")
    ...     return x * factor
    >>> scaled(wf.tensor([1.0]), 2.0).item(), scaled(wf.tensor([1.0]), 3.0).item()
    traced
    (2.0, 3.0)
    """
    positions = [static_argnums] if isinstance(static_argnums, int) else list(static_argnums)
    names = [static_argnames] if isinstance(static_argnames, str) else list(static_argnames)
    if fun is None:
        return lambda f: Jitted(f, positions, names)
    return Jitted(fun, positions, names)
