"""Loop trees to launches: arguments, which are written, which may share memory, cost estimates."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from weft import config
from weft.codegen.loop.domain import traffic
from weft.codegen.loop.expression import Buffer, Expr, needed
from weft.codegen.loop.nest import write_kernel
from weft.codegen.loop.tree import Store, Tree, leaves, to_text
from weft.codegen.target import Target
from weft.ir.node import Value
from weft.ir.shape import size
from weft.passes.launch import Argument, Kernel, Launch

LOOP_IR = 4
"""The `WEFT_DEBUG` level from which loop trees are printed."""


@dataclass(frozen=True)
class Pass:
    """One pass over a row (or over everything): what it computes and stores."""

    stores: tuple[Store, ...]
    values: tuple[Expr, ...]


def launch(
    name: str,
    tree: Sequence[Tree],
    passes: Sequence[Pass],
    target: Target,
    chunks: int = 1,
    integers: tuple[int, ...] = (),
) -> Launch:
    """The launch of a tree. `integers` follow the buffers in the argument table."""
    buffers = buffers_of(tree)
    if int(config.get("debug")) >= LOOP_IR:
        print(f"{name}:\n{to_text(tree, '  ')}", file=sys.stderr)
    written = {leaf.buffer for leaf in leaves(tree) if isinstance(leaf, Store)}
    values = [x for p in passes for x in p.values]
    arrays = [b.source for b in buffers if isinstance(b.source, Value)]
    elements = max([float(size(v.shape)) for v in arrays], default=0.0)
    args: tuple[Argument, ...] = (*[b.source for b in buffers], *integers)
    return Launch(
        Kernel(name, write_kernel(tree, buffers, target.masked, target.lanes)),
        args,
        tuple(n for n, b in enumerate(buffers) if b in written),
        chunks,
        _inplace(buffers, passes),
        elements * sum(1 for x in needed(values) if x.args),
        traffic(values, written),
    )


def buffers_of(tree: Sequence[Tree]) -> list[Buffer]:
    """The buffers that a tree accesses, in order."""
    found: dict[Buffer, None] = {}
    for leaf in leaves(tree):
        for x in needed([leaf.value]):
            if x.op == "load":
                found[x.data[0]] = None
        if isinstance(leaf, Store):
            found[leaf.buffer] = None
    return list(found)


def _inplace(buffers: Sequence[Buffer], passes: Sequence[Pass]) -> tuple[tuple[int, int], ...]:
    """(written, read) positions where an element is only read before and where it is written."""
    reads: dict[Buffer, set[tuple[str, int]]] = {}
    for n, step in enumerate(passes):
        for x in needed(step.values):
            if x.op == "load" and x.data[0] in buffers:  # else no store depends on it
                reads.setdefault(x.data[0], set()).add((x.data[1].key, n))
    pairs: list[tuple[int, int]] = []
    for n, step in enumerate(passes):
        for store in step.stores:
            for buffer, places in reads.items():
                same = all(key == store.offset.key and when <= n for key, when in places)
                if same and _alike(store.buffer, buffer):
                    pairs.append((buffers.index(store.buffer), buffers.index(buffer)))
    return tuple(pairs)


def _alike(out: Buffer, x: Buffer) -> bool:
    if not (isinstance(out.source, Value) and isinstance(x.source, Value)) or out is x:
        return False
    return out.dtype.size == x.dtype.size and size(out.source.shape) == size(x.source.shape)
