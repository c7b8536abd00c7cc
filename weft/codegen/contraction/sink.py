"""Where the sums go: rounding, the epilogue, the output's memory."""

from __future__ import annotations

from typing import Protocol

from weft.codegen.builder import Builder, Reg
from weft.codegen.contraction.emit import scaled, write
from weft.codegen.kernel import Argument
from weft.ir.dtype import DType
from weft.ir.node import Value


class Sink(Protocol):
    """What a product does with finished sums. Rows count through the whole batch."""

    @property
    def args(self) -> tuple[Argument, ...]:
        """The kernel's last arguments."""
        ...

    @property
    def writes(self) -> tuple[int, ...]:
        """Which of `args` are written."""
        ...

    @property
    def inplace(self) -> tuple[tuple[int, int], ...]:
        """Pairs of `args` (written, read) that may be the same memory."""
        ...

    @property
    def weight(self) -> int:
        """Instructions a vector, about; decides whether the code is repeated for every row."""
        ...

    @property
    def label(self) -> str:
        """For the kernel's name."""
        ...

    def begin(self, b: Builder, slot: int) -> None:
        """Write what is done once per call; `args` start in `slot`."""
        ...

    def store(self, b: Builder, value: Reg, at: tuple[Reg, Reg, Reg], mask: Reg | None) -> None:
        """Finish a vector of sums for `at`: row, column, and columns in the matrix."""
        ...


class Plain:
    """Store the sums, rounded to the output's type."""

    inplace: tuple[tuple[int, int], ...] = ()
    writes = (0,)
    weight = 1
    label = ""

    def __init__(self, out: Value) -> None:
        self.args: tuple[Argument, ...] = (out,)
        self._dtype: DType = out.dtype
        self._base: Reg

    def begin(self, b: Builder, slot: int) -> None:
        self._base = b.argument(slot)

    def store(self, b: Builder, value: Reg, at: tuple[Reg, Reg, Reg], mask: Reg | None) -> None:
        row, column, n = at
        run = scaled(b, self._base, row, n, self._dtype.size)
        write(b, value, scaled(b, run, column, 1, self._dtype.size), self._dtype, mask)
