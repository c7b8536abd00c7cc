"""Vectors of lanes: the copies to which a vector loop is unrolled, splats, masks, transposes."""

from __future__ import annotations

from typing import Final

from weft.codegen.builder import LOOKED_THROUGH, Builder, Reg
from weft.codegen.loop.convert import choose
from weft.codegen.loop.index import Symbol


class Copy:
    """Adjacent elements that are computed together: `lanes` of them from `shift` on.

    `mask` (one `i1` per lane) tells which of them exist; `None` means all.
    """

    def __init__(self, lanes: int, shift: int = 0, mask: Reg | None = None, slot: int = 0) -> None:
        self.slot: Final = slot  # the accumulator that it adds to
        self.lanes: Final = lanes
        self.shift: Final = shift
        self.mask: Final = mask
        self.locals: dict[Symbol, Reg] = {}
        self.scopes: list[dict[int | str, Reg]] = [{}]

    def find(self, key: int | str) -> Reg | None:
        """The cached register of `key`, if it is valid here."""
        for scope in reversed(self.scopes):
            if key in scope:
                return scope[key]
        return None

    def keep(self, key: int | str, value: Reg) -> Reg:
        """Caches a register until the innermost loop ends."""
        self.scopes[-1][key] = value
        return value


def splat(f: Builder, x: Reg, lanes: int) -> Reg:
    """`x` in all lanes."""
    return f.splat(x, lanes)


def masked(f: Builder, copy: Copy, new: Reg, old: Reg) -> Reg:
    """`new` in the lanes of `copy` that exist, else `old`."""
    return new if copy.mask is None else choose(f, copy.mask, new, old)


def transposed(f: Builder, rows: list[Reg]) -> list[Reg]:
    """The columns of a square of registers, by exchanging halves, then quarters, and so on."""
    size = half = len(rows)
    while half > 1:
        half //= 2
        done: list[Reg] = list(rows)
        for n in range(size):
            if n & half:
                continue
            low, high = rows[n], rows[n + half]
            for where, first in ((n, 0), (n + half, half)):
                order = [(i & ~half) + first + (size if i & half else 0) for i in range(size)]
                mask = ", ".join(f"i32 {i}" for i in order)
                text = f"shufflevector {low}, {high}, <{size} x i32> <{mask}>"
                done[where] = f.emit(low.type, text)
        rows = done
        if half * LOOKED_THROUGH == size > LOOKED_THROUGH:
            rows = [f.fence(row) for row in rows]
    return rows
