"""vmap of custom functions with their own batching rule.

The enclosing function is being traced for one example. The history of the arguments is computed
outside, for the whole batch; results of the batching rule become further arguments of the trace.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from weft.eager.record.pending.lazy import Lazy, serials
from weft.eager.record.pending.state import trace
from weft.eager.tensor.autograd.custom_function import Call
from weft.eager.tensor.autograd.tracing import Traced, outside, so_far, subgraph_plan, tracers
from weft.eager.tensor.dispatch import wrap
from weft.errors import GradientError, TreeError
from weft.func.front import example, to_front
from weft.func.function import DATA, Arguments, Function, take_apart, trace_function
from weft.func.level import is_begun_since
from weft.func.tree import prefix
from weft.ops.call import Subgraph
from weft.transform.vmap import batch


class VmapInfo(NamedTuple):
    """Information for a batching rule: the batch size, and the `randomness` of `vmap`."""

    batch_size: int
    randomness: str


class Given(NamedTuple):
    """An argument of the trace: its batched value, the given tensor, the batch axis."""

    value: Lazy
    like: Any
    axis: int | None


class Called(NamedTuple):
    """The result of a batching rule, for one example.

    Attributes:
        differentiated: whether a derivative is being taken inside the function under `vmap`.
    """

    found: Any
    differentiated: bool


class Mapping:
    """One call of `vmap` while its function is traced."""

    def __init__(self, given: Sequence[Given], size: int, randomness: str) -> None:
        self.given = given
        self.info = VmapInfo(size, randomness)
        self.since = next(serials)
        self.depth = trace.now.depth + 1
        self.calls: list[Call] = []  # inside derivatives taken inside
        self.sources: dict[Lazy, Given] = {}  # batched values of arguments and rule results

    def trace(self, fun: Function, arguments: Arguments) -> Traced:
        """A function of one example, traced."""

        def begin(stand_ins: Sequence[Lazy]) -> None:
            self.sources.update(zip(stand_ins, self.given, strict=True))

        def run(*args: Any, **kwargs: Any) -> Any:
            found = fun(*args, **kwargs)
            self._pass(True)
            return found

        trace.now.maps.append(self)
        try:
            return trace_function(run, arguments, begin=begin)
        finally:
            trace.now.maps.remove(self)

    def _pass(self, passed: bool) -> None:
        """Set whether gradients flow through results of rules, as seen from outside."""
        for call in self.calls:
            call.passed = passed

    def source(self, x: Lazy) -> Given:
        """The batched value of a stand-in, or an outside value itself."""
        return self.sources.get(x) or Given(x, None, None)

    def call(self, function: Any, args: Sequence[Any]) -> Called | None:
        """Results of a function with a batching rule; `None` if another function is traced inside.

        Raises:
            GradientError: the function also sets `generate_vmap_rule`.
            TreeError: the rule does not return results and their batch axes.
        """
        if function.generate_vmap_rule:
            raise GradientError.here(
                f"{function.__name__}: has both generate_vmap_rule=True and a static method vmap; "
                f"choose one"
            )
        if trace.now.depth != self.depth:
            return None
        apart = take_apart(tuple(args), numbers=False)
        self._pass(True)
        part, captured = so_far(apart.lazies, self.since)
        self._pass(False)
        differentiated = is_begun_since(apart.lazies, self.since)
        with self._outside():
            whole = self._whole(apart, part, captured)
            tensors = apart.with_tensors([x for x, _ in whole])
            axes = [axis for _, axis in whole]
            if any([axis is not None for axis in axes]):
                found, out_dims = self._ruled(function, tensors, _built(apart, axes))
            else:  # nothing is batched: an outer `vmap` may handle it
                found, out_dims = function.apply(*tensors), None
            results = take_apart(found, numbers=False)
            entries = prefix(out_dims, results.tree)
            places = [a for s, a in zip(results.static, entries, strict=True) if s is DATA]
            fronts = list(map(to_front, results.lazies, places))
        rows = zip(fronts, results.likes, places, strict=True)
        return Called(results.with_tensors([self._inside(*row) for row in rows]), differentiated)

    def _whole(
        self, apart: Arguments, part: Subgraph, captured: Sequence[Lazy]
    ) -> list[tuple[Any, int | None]]:
        """Batched arguments with their axes, computed by `part` of the function."""
        given = list(map(self.source, captured))
        flags = [g.axis is not None for g in given]
        fresh = self.info.randomness == "different"
        batched = batch(part, flags, self.info.batch_size, fresh_bits=fresh)
        inputs = tuple([to_front(g.value, g.axis) for g in given])
        values = trace.now.record(subgraph_plan(batched), inputs) if apart.lazies else ()
        found: list[tuple[Any, int | None]] = []
        for x, like, y, mapped in zip(
            apart.lazies, apart.likes, values, batched.mapped, strict=True
        ):
            source = self.sources.get(x)
            if source is None:
                found.append((wrap(y, like), 0 if mapped else None))
            else:
                found.append(
                    (wrap(source.value) if source.like is None else source.like, source.axis)
                )
        return found

    def _ruled(self, function: Any, args: Sequence[Any], in_dims: Any) -> tuple[Any, Any]:
        """The rule's results, and their batch axes."""
        found = function.vmap(self.info, in_dims, *args)
        if not isinstance(found, tuple) or len(found) != 2:  # pyright: ignore[reportUnknownArgumentType]
            raise TreeError.here(
                f"{function.__name__}.vmap: expected two values, results and their axes of "
                f"examples, got {found!r}"
            )
        return found  # pyright: ignore[reportUnknownVariableType]

    @contextlib.contextmanager
    def _outside(self) -> Iterator[None]:
        """Inside it, tracing is suspended; the caller of this `vmap` may still be traced."""
        maps = trace.now.maps
        maps.remove(self)
        try:
            with outside():
                yield
        finally:
            maps.append(self)

    def _inside(self, value: Lazy, like: Any, axis: int | None) -> Any:
        """A stand-in for one example of a result."""
        if axis is None:
            return wrap(value) if like is None else like
        (stand_in,) = tracers([example(value).type])
        self.sources[stand_in] = Given(value, None, 0)
        return wrap(stand_in, like)


def _built(apart: Arguments, axes: Sequence[int | None]) -> Any:
    """Batch axes in the structure of arguments."""
    rest = iter(axes)
    return apart.tree.build([next(rest) if s is DATA else None for s in apart.static])
