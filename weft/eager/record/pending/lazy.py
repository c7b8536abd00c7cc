"""The nodes of the lazy graph: recorded calls (`Record`) and their results (`Lazy`).

A `Lazy` without a record is a leaf, whose array exists from the start. A `Lazy` always stands for
the same value: an in-place operation gives the tensor another `Lazy`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import ref

import numpy as np

from weft.ir.node import NOT_THE_USER, Source, TensorType

if TYPE_CHECKING:
    from weft.eager.record.call.plan import Plan

Array = np.ndarray[Any, Any]
T = TypeVar("T")
L = TypeVar("L", bound="Lazy")


class Record:
    """One recorded call: what (`plan`), on what (`inputs`), at which line of the program
    (`source`).

    Values refer to their record, and a record refers weakly to its values, so there are no
    reference cycles: both are freed with the last tensor that needs them.
    """

    # `entry` sets the fields: a class without `__init__` takes half as long to call.
    __slots__ = ("captured", "code", "freed", "inputs", "place", "plan", "results", "serial")
    plan: Plan
    inputs: tuple[Lazy, ...]
    serial: int
    # By a backward pass without retain_graph: the results of its gradients, which still see the
    # history until they are computed.
    freed: Sequence[tuple[ref[Lazy], ...]] | None
    code: CodeType | None
    # only set for calls of traced functions: see `weft.eager.record.recognition.traced_call`
    captured: Any
    place: int
    results: tuple[ref[Lazy], ...]

    @property
    def outputs(self) -> tuple[Lazy, ...]:
        """Its results that are still referred to."""
        return tuple([y for result in self.results if (y := result()) is not None])

    @outputs.setter
    def outputs(self, outputs: Sequence[Lazy]) -> None:
        self.results = tuple([ref(y) for y in outputs])

    def meet(self, y: Lazy) -> None:
        """Refer to one of its results again, which is in use.

        Python clears weak references to a garbage cycle before it calls finalizers, which may read
        values of the cycle.
        """
        if self.results[y.index]() is None:
            self.results = (*self.results[: y.index], ref(y), *self.results[y.index + 1 :])

    def paired(self, found: Sequence[T]) -> list[tuple[Lazy, T]]:
        """Its results that are still referred to, each paired with its item of `found`."""
        pairs = zip(self.results, found, strict=True)
        return [(y, each) for result, each in pairs if (y := result()) is not None]

    @property
    def source(self) -> Source | None:
        """The line of the user's program that made the call."""
        if self.code is None:
            return None
        found = self.code.co_firstlineno
        for start, end, line in self.code.co_lines():  # a generator's end could lose Ctrl-C
            if start <= self.place < end and line:
                found = line
                break
        return Source(self.code.co_filename, found)


serials: Final = itertools.count()
"""Serial numbers of records, over all threads: larger than those of the record's inputs."""


class _PackageFiles(dict[str, bool]):
    """Whether a file belongs to the package, by its name; cached for each file."""

    def __missing__(self, file: str) -> bool:
        found = self[file] = file.startswith(NOT_THE_USER)
        return found


in_package: Final = _PackageFiles()


def entry(
    plan: Plan, inputs: tuple[Lazy, ...], serial: int, frame: FrameType | None = None
) -> Record:
    """A new record without results; its source is the innermost frame outside the package."""
    record = Record()
    record.plan = plan
    record.inputs = inputs
    record.serial = serial
    record.freed = None
    record.code = None
    while frame is not None:
        code = frame.f_code
        if not in_package[code.co_filename]:
            record.code, record.place = code, frame.f_lasti
            break
        frame = frame.f_back
    return record


class Loan:
    """Marks an array that others may write to; `last` is its latest copy, which is read instead."""

    __slots__ = ("__weakref__", "last")

    def __init__(self) -> None:
        self.last: ref[Lazy] | None = None


class Lazy:
    """A value: its type, its array once it is computed, and the record that computes it."""

    # `begun` sets the fields, for the same reason.
    __slots__ = (
        "__weakref__", "array", "home", "hooks", "index", "leaf", "loan", "owner", "record",
        "tracked", "type",
    )  # fmt: skip
    type: TensorType
    record: Record | None
    index: int
    tracked: bool  # whether a gradient may flow to or through it
    array: Array | None
    owner: Callable[[], Any] | None  # the tensor that holds it, if one does
    leaf: Callable[[], Any] | None  # the tensor whose gradient accumulates
    hooks: dict[int, Any] | None  # called with its gradient: `weft.eager.tensor.autograd.hook`
    home: Lazy | None  # the value whose memory it overwrites: it was computed in place
    loan: Loan | None  # set if others may write to its array: `weft.eager.record.memory.snapshot`

    @property
    def is_live(self) -> bool:
        """Whether a tensor holds the value."""
        return self.owner is not None and self.owner() is not None


def begun(
    lazy: L, type: TensorType, record: Record | None = None, index: int = 0, tracked: bool = False
) -> L:
    """Set the fields of a new value, which is result `index` of `record` or a leaf."""
    lazy.type = type
    lazy.record = record
    lazy.index = index
    lazy.tracked = tracked
    lazy.array = lazy.owner = lazy.leaf = lazy.hooks = lazy.home = None
    lazy.loan = None
    return lazy


def known(array: Array, type: TensorType) -> Lazy:
    """A leaf with this array, or with a scalar of NumPy's as one: kernels get addresses."""
    lazy = begun(Lazy(), type)
    lazy.array = array if isinstance(array, np.ndarray) else np.asarray(array)  # pyright: ignore
    return lazy


class Number(Lazy):
    """A Python number: equal ones may share an array, but are separate inputs of a program."""

    __slots__ = ()


class Tracer(Lazy):
    """An argument of a function that is being traced: it has a type, but no array.

    It is tracked if a gradient with respect to it may be wanted; what is recorded under `no_grad()`
    is detached from it.
    """

    __slots__ = ()


class Alias(Lazy):
    """A leaf that shares the array of `base`, but passes no gradient to it."""

    __slots__ = ("base",)
    base: Lazy


class Drawn(Lazy):
    """The random seed in a traced function: each run draws another."""

    __slots__ = ("again", "serial")
    again: Callable[[], Drawn]  # draws the next seed
    serial: int  # its place in the order of records
