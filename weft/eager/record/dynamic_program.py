"""One compiled program for all sizes of a structure, so that new lengths need no compilation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from weft.eager.record.async_execution import Ahead
from weft.ir.extent import Extent
from weft.ir.node import TensorType
from weft.ir.shape import known
from weft.passes.sized import sized
from weft.passes.step import Step
from weft.runtime.executable import Departure
from weft.runtime.finish import finish
from weft.transform.resize import Sizes, UnfitError

Array = np.ndarray[Any, Any]
Types = Sequence[tuple[tuple[int, ...], np.dtype[Any]]]


class Case(NamedTuple):
    """What a run for certain sizes needs.

    Attributes:
        extents: the values of all extents.
        numbers: arrays for the feeds after those of the step.
        types: shapes and dtypes of the results.
    """

    extents: list[int]
    numbers: list[Array]
    types: Types


TRIALS: Final = 2
"""First runs that are interpreted as well and compared, before the program is trusted."""
TOLERANCE: Final = 1e-2
"""Allowed difference relative to the largest element; wrong indices differ by more."""


class DynamicProgram:
    """A program for many sizes.

    Raises:
        UnfitError: no single step covers all samples.
        CompileError: some part of it has no kernel for many sizes.
    """

    def __init__(self, samples: Sequence[tuple[Sizes, Step]], threads: int) -> None:
        self._sized: Final = sized(samples)
        self._sized.extents.planning = True
        self._executable: Final = finish(self._sized.step, threads, extents=self._sized.extents)
        nodes = {node.name: node for node in self._sized.step.graph.nodes if not node.inputs}
        self._feeds: Final = [
            nodes[name].types[0] if name in nodes else None for name in self._sized.step.feeds
        ]
        self._ahead: Ahead | None = None
        self.trials = TRIALS

    def ahead(self, keys: Sequence[str], homes: Sequence[int]) -> Ahead:
        """Where its callers may return; see `Ahead`."""
        if self._ahead is None:
            self._ahead = Ahead(self._executable, keys, homes)
        return self._ahead

    def run(
        self, case: Case, arrays: Sequence[Array], memories: Mapping[str, Array],
        departure: Departure | None = None,
    ) -> None:  # fmt: skip
        """See `Executable.launch`."""
        self._executable.launch(
            [*arrays, *case.numbers], memories, departure=departure, extents=case.extents
        )

    def agrees(
        self, wanted: Sequence[Array], found: Sequence[Array], again: Callable[[], Sequence[Array]]
    ) -> bool:
        """Whether results equal those of the interpreter up to rounding; uses up one trial.

        Args:
            again: what the interpreter gives for inputs that differ in their last bits. A result
                that differs then is rounding alone, such as gradients of a bias before a
                normalization.
        """
        self.trials -= 1
        apart = [i for i, pair in enumerate(zip(wanted, found, strict=True)) if not _close(*pair)]
        others = again() if apart else ()
        return not any([_close(wanted[i], others[i]) for i in apart])

    def at(self, sizes: Sizes, feeds: Sequence[TensorType]) -> Case | None:
        """What a run for these sizes needs; `None` if the program does not cover them.

        Args:
            feeds: the types of the step's feeds.
        """
        planned = self._sized
        try:
            bases = planned.fit.values(sizes)
            limits = zip(planned.least, bases, planned.most, strict=True)
            if not all([least <= n <= most for least, n, most in limits]):
                return None
            extents = planned.extents.values(bases)
            numbers = [number.at(bases) for number in planned.numbers]
        except (UnfitError, ZeroDivisionError):  # for example, no whole tile fits
            return None
        given = zip(self._feeds, feeds, strict=False)
        if not planned.extents.admits(extents) or any(
            [kind is not None and _at(kind, extents) != feed.shape for kind, feed in given]
        ):
            return None
        outputs = [(_at(v.type, extents), v.dtype.numpy) for v in planned.step.graph.outputs]
        return Case(extents, numbers, tuple(outputs))

    def is_planned_for(self, sizes: Sizes) -> bool:
        """Whether these sizes are within its bounds, even if they need other kernels."""
        bases = self._sized.fit.bases(sizes)
        return all([n <= most for n, most in zip(bases, self._sized.most, strict=True)])


def _at(kind: TensorType, extents: Sequence[int]) -> tuple[int, ...]:
    """The concrete shape for these values of all extents."""
    return tuple([extents[d.index] if isinstance(d, Extent) else d for d in known(kind.shape)])


def perturbed(array: Array) -> Array:
    """The array with each floating-point number replaced by the next representable one."""
    if array.dtype.kind != "f":
        return array
    return np.nextafter(array, np.array(np.inf, array.dtype))


def _close(wanted: Array, found: Array) -> bool:
    if not np.issubdtype(wanted.dtype, np.inexact):
        return bool((wanted == found).all())
    finite = np.isfinite(wanted)
    scale = float(np.abs(wanted[finite]).max(initial=0.0))
    return np.allclose(found, wanted, TOLERANCE, TOLERANCE * scale, equal_nan=True)
