"""Finds launches that depend only on feeds that rarely change: they run once, in a prelude.

They pack, transpose or transform weights, or compute factors from running statistics. Their results
stay in the program's memory until such a feed changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet

from weft.passes.launch import ERROR, Buffer, Launch, Scratch


def prelude_launches(
    launches: Sequence[Launch], buffer_of: Callable[[Buffer], Buffer],
    lasting: Callable[[Buffer], bool], external: Callable[[Buffer], bool],
    moves: Callable[[Buffer], bool] = lambda buffer: False,
) -> set[int]:  # fmt: skip
    """Positions of the launches of the prelude.

    Args:
        buffer_of: the memory behind an argument.
        lasting: whether external memory keeps its contents between steps.
        external: whether memory exists before the step or outlives it.
        moves: whether an argument advances with the iterations of a loop.
    """
    reads, writes = zip(*[_touched(x, buffer_of) for x in launches], strict=True)
    writers: dict[Buffer, list[int]] = {}
    for position, buffers in enumerate(writes):
        for buffer in buffers:
            writers.setdefault(buffer, []).append(position)
    kept = {
        i
        for i, x in enumerate(launches)
        if not (x.check or any([moves(a) for a in x.args if not isinstance(a, int)]))
        and x.kernel.ir
    }

    def stays(buffer: Buffer) -> bool:
        if external(buffer):
            return lasting(buffer)
        return all(i in kept for i in writers.get(buffer, ()))

    changing = True
    while changing:
        changing = False
        for position in sorted(kept):
            result_stays = all(stays(b) and not external(b) for b in writes[position])
            if not (result_stays and all(map(stays, reads[position]))):
                kept.remove(position)
                changing = True
    return kept


def _touched(
    launch: Launch, buffer_of: Callable[[Buffer], Buffer]
) -> tuple[list[Buffer], list[Buffer]]:
    """What a launch reads and writes, except per-thread scratch."""
    reads: list[Buffer] = []
    writes: list[Buffer] = []
    for slot, argument in enumerate(launch.args):
        if isinstance(argument, int) or argument is ERROR:
            continue
        if isinstance(argument, Scratch) and argument.per_thread:
            continue
        (writes if slot in launch.writes else reads).append(buffer_of(argument))
    return reads, writes


def handed_on(
    launches: Sequence[Launch],
    kept: AbstractSet[int],
    buffer_of: Callable[[Buffer], Buffer],
) -> list[Buffer]:
    """What the prelude writes and the rest reads."""
    written: dict[Buffer, None] = {}
    read: set[Buffer] = set()
    for position, launch in enumerate(launches):
        reads, writes = _touched(launch, buffer_of)
        if position in kept:
            written.update(dict.fromkeys(writes))
        else:
            read.update(reads)
    return [buffer for buffer in written if buffer in read]
