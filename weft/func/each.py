"""Views under vmap: views of one example as views of the batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from weft.eager.functions.indexing.subscript import Picked
from weft.eager.record.call.interned_type import intern
from weft.eager.record.pending.lazy import Lazy
from weft.eager.record.pending.state import trace
from weft.eager.tensor.autograd.tracing import subgraph_plan, trace_tensors
from weft.eager.tensor.handle import Handle
from weft.eager.tensor.view.view import Array, Lens
from weft.ir.shape import known
from weft.transform.vmap import batch


@dataclass(frozen=True, slots=True)
class Each:
    """The lens of a view of one example, applied to a batch with a leading batch axis."""

    lenses: tuple[Lens, ...]
    detached: ClassVar[bool] = False

    def lay(self, base: Array) -> Array:
        """See `Lens`."""
        part = base[0]
        for lens in self.lenses:
            part = lens.lay(part)
        shape, strides = (len(base), *part.shape), (base.strides[0], *part.strides)
        return np.lib.stride_tricks.as_strided(part, shape, strides)

    def take(self, base: Lazy) -> Lazy:
        """See `Lens`."""
        return _of_many(lambda x: self._bases(x)[-1], base)

    def put(self, base: Lazy, part: Lazy) -> Lazy:
        """See `Lens`."""

        def put_one(x: Lazy, part: Lazy) -> Lazy:
            pairs = zip(self.lenses, self._bases(x), strict=False)
            for lens, inner in reversed(list(pairs)):
                part = lens.put(inner, part)
            return part

        return _of_many(put_one, base, part)

    def _bases(self, x: Lazy) -> list[Lazy]:
        """The base of each of the lenses, and the last view."""
        found = [x]
        for lens in self.lenses:
            found.append(lens.take(found[-1]))
        return found


def _of_many(function: Callable[..., Lazy], *xs: Lazy) -> Lazy:
    """A function of one example, recorded for a batch."""

    def run(tracers: tuple[Lazy, ...]) -> tuple[list[Lazy], None]:
        return [function(*tracers)], None

    count = known(xs[0].type.shape)[0]
    types = [intern(x.type.dtype, known(x.type.shape)[1:]) for x in xs]
    traced = trace_tensors(run, types, constants=True)
    batched = batch(traced.function, [True] * len(xs), count)
    return trace.now.record(subgraph_plan(batched), xs)[0]


def lenses_from(x: Any, bases: dict[int, int]) -> tuple[int | None, tuple[Lens, ...]]:
    """The root base of `x` among some tensors (by their ids), and the lenses from it.

    A view at an index held by a tensor differs between examples, so it counts as no view.
    """
    lenses: list[Lens] = []
    while id(x) not in bases:
        view = x.view_of if isinstance(x, Handle) else None
        if view is None or view.lens.detached or isinstance(view.lens, Picked):
            return None, ()
        lenses.append(view.lens)
        x = view.base
    return bases[id(x)], tuple(reversed(lenses))
