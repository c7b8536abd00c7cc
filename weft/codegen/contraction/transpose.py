"""Transposes a square of vectors in registers."""

from __future__ import annotations

from weft.codegen.builder import LOOKED_THROUGH, Builder, Reg, element, vector


def transpose(b: Builder, rows: list[Reg], lanes: int, each: int = 1) -> list[Reg]:
    """The transpose: vector i holds lane i of every row; log2(lanes) rounds of shuffles.

    There are `lanes` rows, `lanes` a power of two; or `lanes // each`, whose elements are blocks of
    `each` lanes.
    """
    step = each
    while step < lanes:
        low = [lane if not lane & step else lanes + lane - step for lane in range(lanes)]
        high = [lane + step if not lane & step else lanes + lane for lane in range(lanes)]
        following = list(rows)
        apart = step // each
        for i in range(len(rows)):
            if not i & apart:
                following[i] = shuffle(b, rows[i], rows[i + apart], low)
                following[i + apart] = shuffle(b, rows[i], rows[i + apart], high)
        rows = following
        step *= 2
        if step == LOOKED_THROUGH < lanes:
            rows = [b.fence(row) for row in rows]
    return rows


def shuffle(b: Builder, x: Reg, y: Reg, lanes: list[int]) -> Reg:
    """Picks lanes from two vectors laid end to end."""
    picked = ", ".join(f"i32 {lane}" for lane in lanes)
    return b.emit(x.type, f"shufflevector {x}, {y}, <{len(lanes)} x i32> <{picked}>")


def repeated(b: Builder, x: Reg, count: int, lanes: int) -> Reg:
    """A vector of `lanes` lanes from one of `count`, again and again."""
    picked = ", ".join(f"i32 {lane % count}" for lane in range(lanes))
    type_ = vector(element(x.type), lanes)
    return b.emit(type_, f"shufflevector {x}, {x}, <{lanes} x i32> <{picked}>")
