"""Checkpointed functions that read values: they are called again in the backward pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final

from weft.eager.functions.random.generator import default_generator
from weft.eager.record.pending.conjugate import conjugated
from weft.eager.record.pending.lazy import Lazy, serials
from weft.eager.record.pending.mode import Setting
from weft.eager.record.pending.state import trace
from weft.eager.tensor.autograd.backward import history, walk
from weft.eager.tensor.autograd.custom_function import Function
from weft.eager.tensor.autograd.function_context import tensor_of
from weft.eager.tensor.dispatch import recorded, unowned, wrap
from weft.eager.tensor.handle import Handle
from weft.errors import GradientError
from weft.func.tree import Tree, flatten
from weft.ir.node import TensorType, Value
from weft.ops.call import barrier
from weft.ops.declaration.fact import Autocast

Context = AbstractContextManager[Any]


def called_again(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
    contexts: tuple[Context, Context], checks: bool,
) -> Any:  # fmt: skip
    """`function(*args, **kwargs)`, which the backward pass calls again; nothing else is kept.

    Args:
        contexts: for the first call, and for the second.
        checks: whether the second call must give the same types.
    """
    leaves, tree = flatten((args, kwargs))
    given = [(x.lazy if isinstance(x, Handle) else x, x) for x in leaves]
    state, autocast = default_generator.get_state(), trace.now.autocast
    since = next(serials)
    with contexts[0]:
        found = function(*args, **kwargs)
    results, shape = flatten(found)
    made = _made(results, since)
    if not made or not trace.now.grad_mode:
        return found
    sources = _sources([results[i].lazy for i in made], since)
    types = [results[i].lazy.type for i in made]
    call = _Call(function, tree, given, contexts[1], state, autocast, sources, types, checks)
    shown = _Again.apply(call, tuple([results[i] for i in made]), *map(tensor_of, sources))
    for i, y in zip(made, shown, strict=True):
        results[i] = y
    return shape.build(results)


def _made(results: Sequence[Any], since: int) -> list[int]:
    """Those results through which gradients flow and that were recorded since."""
    return [
        i
        for i, y in enumerate(results)
        if isinstance(y, Handle) and y.lazy.tracked and _is_inside(y.lazy, since)
    ]


def _is_inside(lazy: Lazy, since: int) -> bool:
    return lazy.leaf is None and lazy.record is not None and lazy.record.serial >= since


def _sources(ys: Sequence[Lazy], since: int) -> list[Lazy]:
    """The earlier values that gradients flow to."""
    found: dict[Lazy, None] = {}
    seen = set(ys)
    stack = list(ys)
    while stack:
        record = stack.pop().record
        for x in () if record is None else record.inputs:
            if x.tracked and not _is_inside(x, since):
                found[x] = None
            elif x.tracked and x not in seen:
                seen.add(x)
                stack.append(x)
    return list(found)


def _barrier(*xs: Value) -> Sequence[Value]:
    return barrier.all(*xs)


_hold: Final = recorded(_barrier, autocast=Autocast.KEPT)


@dataclass(frozen=True)
class _Call:
    """A call that can be repeated."""

    function: Callable[..., Any]
    tree: Tree
    given: Sequence[tuple[Any, Any]]  # the arguments as given, with tensors as their values
    context: Context
    state: Any
    autocast: Any
    sources: Sequence[Lazy]
    types: Sequence[TensorType]
    checks: bool

    def pull(self, gs: Sequence[Any]) -> tuple[Any, ...]:
        """Gradients by the sources, from those of the results."""
        since = next(serials)
        results = self._results(() if trace.now.grad_mode else gs)
        made = [results[i].lazy for i in _made(results, since)]
        types = [y.type for y in made]
        if len(made) != len(gs) or (self.checks and types != list(self.types)):
            raise GradientError.here(
                "checkpoint: expected the function to give in the backward pass what it gave "
                f"before: {_listed(self.types)}; got {_listed(types)}"
            )
        starts = [(y, conjugated(g.lazy)) for y, g in zip(made, gs, strict=True)]
        past = history(made, self.sources)
        found = walk(starts, self.sources, past, outside=self.sources)
        return tuple([None if g is None else wrap(unowned(conjugated(g))) for g in found])

    def _results(self, gs: Sequence[Any]) -> list[Any]:
        """The results of the second call, with the same random numbers.

        Outside of a graph, its arguments pass a barrier together with the cotangents, so that
        nothing of the first call is kept.
        """
        after = default_generator.get_state()
        default_generator.set_state(self.state)
        try:
            with Setting("grad_mode", True), Setting("autocast", self.autocast), self.context:
                xs = dict.fromkeys([x for x, _ in self.given if isinstance(x, Lazy)])
                held = _hold.record([*xs, *gs], {})
                own = dict(zip(xs, held, strict=False))
                given = [wrap(unowned(own[x]), y) if x in own else x for x, y in self.given]
                args, kwargs = self.tree.build(given)
                return flatten(self.function(*args, **kwargs))[0]
        finally:
            default_generator.set_state(after)


def _listed(types: Sequence[TensorType]) -> str:
    return ", ".join(map(str, types)) or "nothing"


class _Again(Function):
    """Results whose gradients come from a second call."""

    @staticmethod
    def forward(ctx: Any, call: _Call, found: tuple[Any, ...], *_: Any) -> tuple[Any, ...]:
        """The results."""
        ctx.call = call
        return tuple([y.detach() for y in found])

    @staticmethod
    def backward(ctx: Any, *gs: Any) -> tuple[Any, ...]:
        """Call the function again."""
        return (None, None, *ctx.call.pull(gs))
