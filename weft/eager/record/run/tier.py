"""The interface of what computes structures: library kernels, a program of its own, NumPy.

Which one does follows from the structure and from how often it has run: see `tier_choice`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple

from weft.eager.record.listing.expansion import expand
from weft.eager.record.pending.lazy import Array, Lazy
from weft.eager.record.recognition.structure import Structure
from weft.runtime.compilation import compiler
from weft.runtime.flight import land
from weft.transform.interpretation import Interpretation


class Results(NamedTuple):
    """What a run has computed.

    Attributes:
        arrays: those of the outputs.
        rows: positions of the outputs that are two arrays: see `Expanded`.
    """

    arrays: list[Array]
    rows: frozenset[int] = frozenset()


Compute = Callable[[], Results]
"""Runs once.

Raises:
    WeftError: a value does not fit, such as an index.
"""


class Tier(ABC):
    """What computes a structure now.

    Args:
        as_rows: whether row-sparse outputs stay so: see `expand`.

    Attributes:
        overwrites: whether the run that was begun last writes to the memory of leaves.
    """

    def __init__(self, as_rows: bool) -> None:
        self.as_rows = as_rows
        self.overwrites = False

    @property
    @abstractmethod
    def why(self) -> str:
        """What it is, and for which reason."""
        ...

    @property
    def is_ready(self) -> bool:
        """Whether it runs without a compiler."""
        return False

    def next(self, structure: Structure) -> Tier | None:
        """What computes the next run of the structure; `None` if that is to be chosen anew."""
        del structure
        return self

    @abstractmethod
    def begin(self, structure: Structure, leaves: Sequence[Array], wanted: Lazy | None) -> Compute:
        """Makes what a run needs.

        Args:
            wanted: the output that is read next, if one is.

        Raises:
            NoRoutineError: the library has no kernels for something.
            CompileError: there is no kernel for something.
            NoCompilerError: a kernel is missing, and there is no compiler.
        """
        ...

    def instead(self, structure: Structure, error: Exception) -> Tier:
        """What computes the structure if `begin` has raised an error.

        Raises:
            Exception: the same error, if nothing can.
        """
        del structure
        raise error


class Interpreted(Tier):
    """NumPy computes it, where no machine code can be made.

    Args:
        for_good: whether it stays so when there is a compiler again.
    """

    def __init__(self, structure: Structure, as_rows: bool, for_good: bool = False) -> None:
        super().__init__(as_rows)
        self._for_good = for_good
        expanded = expand(structure, as_rows)
        self._rows = expanded.rows
        self._run = Interpretation(expanded.graph, expanded.outputs, expanded.feeds)

    @property
    def why(self) -> str:
        """See `Tier`."""
        if self._for_good:
            return "NumPy: the compiler knows no control flow with complex numbers"
        return "NumPy: no machine code can be made"

    @property
    def is_ready(self) -> bool:
        """See `Tier`."""
        return True

    def next(self, structure: Structure) -> Tier | None:
        """See `Tier`."""
        return None if compiler.available() and not self._for_good else self

    def begin(self, structure: Structure, leaves: Sequence[Array], wanted: Lazy | None) -> Compute:
        """See `Tier`."""

        def compute() -> Results:
            land()
            return Results(self._run(leaves), self._rows)

        return compute
