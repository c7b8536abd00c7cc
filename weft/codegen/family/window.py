"""Pooling and its gradients on images (N, spatial..., C), by vectors of channels.

Forward, an output pixel reads its window. Backward, an input pixel reads from the windows that
cover it, so that chunks write disjoint rows and the order of a sum is fixed. The gradient of max
pooling first records the position of each window's maximum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from weft.codegen.builder import Builder, Reg, constant, element, integer, kernel_builder, vector
from weft.codegen.chunk import Items, by_work
from weft.codegen.contraction.emit import larger, read, smaller, subtract, write
from weft.codegen.family.emit import Part, compute_dtype
from weft.codegen.family.pooling import (
    Block,
    Carried,
    Pool,
    Range,
    Visit,
    over_pixels,
    over_windows,
    pool_of,
)
from weft.codegen.loop.arithmetic import combine
from weft.codegen.microkernel import load_masked, store_masked
from weft.codegen.target import Target
from weft.ir.extent import largest
from weft.ir.node import Node
from weft.passes.group import Group
from weft.passes.launch import Argument, Kernel, Launch, Scratch

Over = Callable[[Builder, Pool, Items, Block], None]


def launch(
    pool: Pool,
    name: str,
    over: Over,
    args: tuple[Argument, ...],
    block: Callable[[Builder, list[Reg]], Block],
) -> Launch:
    """One kernel over windows or pixels; `args` end with the output."""
    dims = pool.output if over is over_windows else pool.image
    work = dims[-1] * pool.channels * (pool.places if over is over_windows else 1)
    rows = by_work(pool.images * math.prod(dims[:-1]), work)
    f = kernel_builder()
    pointers = [f.argument(i) for i in range(len(args))]
    over(f, pool, rows, block(f, pointers))
    kernel = Kernel(f"{name}_{pool.name}", f.module())
    size = pool.dtype.size
    touched = (pool.pixels + pool.images * math.prod(pool.image)) * pool.channels * size
    return Launch(kernel, args, (len(args) - 1,), rows.chunks, bytes=float(touched))


def load(f: Builder, pool: Pool, base: Reg, at: Reg, part: Part) -> Reg:
    """Loads a vector of channels in the type of sums."""
    pointer = f.offset(base, f.mul(f.add(at, part.first), pool.dtype.size))
    return read(f, pointer, pool.lanes, pool.dtype, compute_dtype(pool.dtype), part.mask)


def save(f: Builder, pool: Pool, value: Reg, base: Reg, at: Reg, part: Part) -> None:
    """Rounds and stores a vector of channels."""
    pointer = f.offset(base, f.mul(f.add(at, part.first), pool.dtype.size))
    write(f, value, pointer, pool.dtype, part.mask)


def _pooled(
    group: Group, target: Target, op: str, start: float,
    divisor: Callable[[Builder, Pool, Node, Sequence[Range]], Reg] | None = None,
) -> tuple[Launch, ...]:  # fmt: skip
    """Combines the elements of every window; divides them by what `divisor` gives."""
    node = group.nodes[0]
    x, y = node.data_inputs[0], node.outputs[0]
    pool = pool_of(node, x.shape, target)
    if not pool.pixels * pool.channels:
        return ()

    def block(f: Builder, pointers: list[Reg]) -> Block:
        def emit(out: Reg, parts: Sequence[Part], ranges: Sequence[Range], visit: Visit) -> None:
            def step(carried: Carried, at: Reg, place: Reg) -> Carried:
                values = [load(f, pool, pointers[0], at, part) for part in parts]
                dtype = compute_dtype(pool.dtype)
                both = zip(carried, values, strict=True)
                return [combine(f, op, dtype, a, b) for a, b in both]

            results = visit([constant(start, pool.vector)] * len(parts), step)
            count = None if divisor is None else divisor(f, pool, node, ranges)
            for value, part in zip(results, parts, strict=True):
                mean = value if count is None else f.binary("fdiv", value, count)
                save(f, pool, mean, pointers[1], out, part)

        return emit

    return (launch(pool, node.op, over_windows, (x, y), block),)


def max_pool(group: Group, target: Target) -> tuple[Launch, ...]:
    """The largest element of every window; NaN wins, padding does not."""
    return _pooled(group, target, "maximum", -math.inf)


def max_pool_grad(group: Group, target: Target) -> tuple[Launch, ...]:
    """Adds each output's cotangent to the first largest element (or NaN) of its window."""
    node = group.nodes[0]
    (x, g), y = node.data_inputs, node.outputs[0]
    pool = pool_of(node, x.shape, target)
    if not pool.images * math.prod(pool.image) * pool.channels:
        return ()
    size = 1 if pool.places_type == "i8" else 4
    winners = Scratch(largest(1, pool.pixels * pool.channels * size))
    return (
        launch(pool, "max_pool_winner", over_windows, (x, winners), lambda f, p: note(f, pool, p)),
        launch(pool, "max_pool_grad", over_pixels, (g, winners, y), lambda f, p: pull(f, pool, p)),
    )


def note(f: Builder, pool: Pool, pointers: list[Reg]) -> Block:
    """Stores the position of the first largest element (or NaN) of a window; -1 in padding."""
    whole = "i64" if element(pool.vector) == "double" else "i32"
    places = vector(whole, pool.lanes)

    def step(parts: Sequence[Part], carried: Carried, at: Reg, place: Reg) -> Carried:
        count = len(parts)
        number = f.splat(_converted(f, place, whole), pool.lanes)
        best, winner = list(carried[:count]), list(carried[count:])
        for i, part in enumerate(parts):
            value = load(f, pool, pointers[0], at, part)
            above = f.compare("fcmp ugt", value, best[i])  # or one of them is NaN
            new = f.binary("and", above, f.compare("fcmp ord", best[i], best[i]))
            first = f.compare("icmp slt", winner[i], constant(0, places))
            takes = f.binary("or", new, first)
            best[i] = f.emit(value.type, f"select {takes}, {value}, {best[i]}")
            winner[i] = f.emit(places, f"select {takes}, {number}, {winner[i]}")
        return [*best, *winner]

    def emit(out: Reg, parts: Sequence[Part], ranges: Sequence[Range], visit: Visit) -> None:
        start = [constant(-math.inf, pool.vector)] * len(parts)
        start += [constant(-1, places)] * len(parts)
        found = visit(start, lambda c, at, place: step(parts, c, at, place))
        for winner, part in zip(found[len(parts) :], parts, strict=True):
            narrow = _converted(f, winner, pool.places_type)
            pointer = f.offset(pointers[1], f.add(out, part.first), pool.places_type)
            if part.mask is None:
                f.store(narrow, pointer)
            else:
                store_masked(f, narrow, pointer, part.mask)

    return emit


def _converted(f: Builder, x: Reg, scalar: str) -> Reg:
    """Converts an integer register to another element size, keeping small values."""
    before, after = int(element(x.type)[1:]), int(scalar[1:])
    if x.text.lstrip("-").isdigit():
        return Reg(scalar, x.text)
    type_ = scalar if element(x.type) == x.type else x.type.replace(element(x.type), scalar)
    if before == after:
        return x
    return f.emit(type_, f"{'trunc' if after < before else 'sext'} {x} to {type_}")


def pull(f: Builder, pool: Pool, pointers: list[Reg]) -> Block:
    """Sums the cotangents of the windows whose maximum is the pixel."""
    zero = constant(0, pool.vector)
    type_ = vector(pool.places_type, pool.lanes)

    def won(at: Reg, part: Part, place: Reg) -> Reg:
        pointer = f.offset(pointers[1], f.add(at, part.first), pool.places_type)
        if part.mask is None:
            winner = f.load(type_, pointer)
        else:
            winner = load_masked(f, type_, pointer, part.mask)
        return f.compare("icmp eq", winner, place)

    def emit(out: Reg, parts: Sequence[Part], ranges: Sequence[Range], visit: Visit) -> None:
        def step(carried: Carried, at: Reg, place: Reg) -> Carried:
            number = f.splat(_converted(f, place, pool.places_type), pool.lanes)
            sums: Carried = []
            for total, part in zip(carried, parts, strict=True):
                g = load(f, pool, pointers[0], at, part)
                share = f.emit(g.type, f"select {won(at, part, number)}, {g}, {zero}")
                sums.append(f.binary("fadd", total, share))
            return sums

        for total, part in zip(visit([zero] * len(parts), step), parts, strict=True):
            save(f, pool, total, pointers[2], out, part)

    return emit


def avg_pool(group: Group, target: Target) -> tuple[Launch, ...]:
    """The mean of every window, of all its elements or of those inside the image."""

    def divisor(f: Builder, pool: Pool, node: Node, ranges: Sequence[Range]) -> Reg:
        counts = [subtract(f, part.last, part.first) for part in ranges]
        return _divisor(f, pool, node, counts)

    return _pooled(group, target, "add", 0, divisor)


def _divisor(f: Builder, pool: Pool, node: Node, counts: Sequence[Reg]) -> Reg:
    """How many elements a window counts, as a vector; `counts` lie inside along each axis."""
    if node.attrs["count_include_pad"]:
        return constant(pool.places, pool.vector)
    count = integer(1)
    for inside in counts:
        count = f.mul(count, larger(f, inside, 0))
    scalar = element(pool.vector)
    number = f.emit(scalar, f"sitofp {larger(f, count, 1)} to {scalar}")
    return f.splat(number, pool.lanes)


def avg_pool_grad(group: Group, target: Target) -> tuple[Launch, ...]:
    """Distributes each output's cotangent equally to the elements of its window."""
    node = group.nodes[0]
    g, y = node.data_inputs[0], node.outputs[0]
    pool = pool_of(node, y.shape, target)
    if not pool.images * math.prod(pool.image) * pool.channels:
        return ()

    def block(f: Builder, pointers: list[Reg]) -> Block:
        def emit(out: Reg, parts: Sequence[Part], ranges: Sequence[Range], visit: Visit) -> None:
            def step(carried: Carried, at: Reg, place: Reg) -> Carried:
                divisor = _cover_divisor(f, pool, node, ranges, place)
                values = [load(f, pool, pointers[0], at, part) for part in parts]
                shares = [f.binary("fdiv", v, divisor) for v in values]
                return [f.binary("fadd", a, b) for a, b in zip(carried, shares, strict=True)]

            sums = visit([constant(0, pool.vector)] * len(parts), step)
            for value, part in zip(sums, parts, strict=True):
                save(f, pool, value, pointers[1], out, part)

        return emit

    return (launch(pool, "avg_pool_grad", over_pixels, (g, y), block),)


def _cover_divisor(f: Builder, pool: Pool, node: Node, ranges: Sequence[Range], place: Reg) -> Reg:
    """The divisor of the window in which a pixel has the given position."""
    if node.attrs["count_include_pad"]:
        return constant(pool.places, pool.vector)
    counts: list[Reg] = []
    for axis in reversed(range(len(ranges))):
        size = pool.window[axis]
        rest = f.binary("udiv", place, integer(size))
        shift = subtract(f, place, f.mul(rest, size))
        place = rest
        origin = f.add(subtract(f, ranges[axis].origin, shift), -pool.low[axis])
        first = larger(f, subtract(f, integer(0), origin), 0)
        last = smaller(f, subtract(f, integer(pool.image[axis]), origin), size)
        counts.append(subtract(f, last, first))
    return _divisor(f, pool, node, counts)
