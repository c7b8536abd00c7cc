"""Collectives of a group on arrays, built of messages between members.

All members call each function; `what` names the call in messages. Costs are in the alpha-beta
model: `a` per message, `b` per byte, `p` members, `n` bytes of each member. Members that share
memory reduce and gather there (`weft.transport.shared`).
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Sequence
from typing import Final

import numpy as np

from weft.transport import shared
from weft.transport.base import Array, Pending
from weft.transport.channel import SLOT_BYTES
from weft.transport.group import Group
from weft.transport.reduction import reduced, zeros_for
from weft.transport.small import is_small, small_reduction

SMALL_BYTES: Final = 1 << 15
"""Up to this size, each member sends everything to each other: one round instead of two."""
SMALL_OF_TWO: Final = 1 << 19
"""The same for two members, who send no more this way: 46 us instead of 87 at 128 KiB."""


CHUNK_BYTES: Final = 4 << 20
"""Larger arrays are reduced in pieces, whose memory stays in caches and is reused."""
MOST_STARTED: Final = 3
"""Exchanges in flight: one piece is gathered, one is waited for, the next is started."""


def barrier(group: Group, what: str = "barrier") -> None:
    """Wait until all members have called it; log2(p) rounds of empty messages."""
    empty = np.zeros(0, np.uint8)
    with group.call(what) as tag:
        step = 1
        while step < group.size:
            to, source = (group.index + step) % group.size, (group.index - step) % group.size
            group.exchange(tag, {to: empty}, {source: empty})
            step *= 2


def broadcast(group: Group, x: Array, root: int, what: str) -> None:
    """Overwrite `x` with that of member `root`; log2(p) (a + n b)."""
    with group.call(what) as tag:
        place = (group.index - root) % group.size
        step = 1
        if not place:
            steps = [1 << i for i in range((group.size - 1).bit_length())]
            group.confirm_later(tag, [(group.index + s) % group.size for s in steps])
        while step < group.size:
            if step <= place < 2 * step:
                group.exchange(tag, {}, {(group.index - step) % group.size: x})
                if place == step:
                    group.confirm_to(tag, root)
            elif place < step and place + step < group.size:
                group.exchange(tag, {(group.index + step) % group.size: x}, {})
            step *= 2


def all_gather(group: Group, x: Array, out: Sequence[Array], what: str) -> None:
    """Fill `out` with each member's `x`; (p - 1) (a + n b)."""
    if group.channel is not None:
        shared.all_gather(group, group.channel, [x], [out], what)
        return
    with group.call(what) as tag:
        _gather_all(group, tag, x, out)


def _gather_all(group: Group, tag: int, x: Array, out: Sequence[Array]) -> None:
    others = _others(group)
    group.exchange(tag, dict.fromkeys(others, x), {i: out[i] for i in others})
    if out[group.index] is not x:
        out[group.index][...] = x


def all_gather_lists(group: Group, arrays: Sequence[Sequence[Array]], what: str) -> None:
    """All-gather of lists of arrays, whose lengths may differ between members.

    In shared memory if each list fits a slot, else by messages, which copy once. 51 MB in 161
    arrays take 10 to 18 ms by messages and 11 to 24 in shared memory; 0.6 MB in 6 arrays take 0.12
    and 0.07.
    """
    channel = group.channel
    with group.call(what) as tag:
        if channel is not None and all([_bytes(row) <= SLOT_BYTES for row in arrays]):
            shared.gather_lists(group, channel.call(tag), arrays)
            return
        own, others = arrays[group.index], _others(group)
        group.exchange_many(tag, dict.fromkeys(others, own), {i: arrays[i] for i in others})


def _bytes(arrays: Sequence[Array]) -> int:
    return sum([x.nbytes for x in arrays])


def gather(group: Group, x: Array, out: Sequence[Array] | None, root: int, what: str) -> None:
    """Fill `out` of member `root` with each member's `x`."""
    with group.call(what) as tag:
        if group.index != root:
            group.exchange(tag, {root: x}, {})
            return
        assert out is not None
        group.exchange(tag, {}, {i: out[i] for i in _others(group)})
        out[root][...] = x


def scatter(group: Group, xs: Sequence[Array] | None, out: Array, root: int, what: str) -> None:
    """Fill `out` of member i with the i-th of member `root`'s `xs`."""
    with group.call(what) as tag:
        if group.index != root:
            group.exchange(tag, {}, {root: out})
            group.confirm_to(tag, root)
            return
        assert xs is not None
        group.confirm_later(tag, _others(group))
        group.exchange(tag, {i: xs[i] for i in _others(group)}, {})
        out[...] = xs[root]


def all_to_all(group: Group, xs: Sequence[Array], out: Sequence[Array], what: str) -> None:
    """Send the i-th of `xs` to member i, and fill the i-th of `out` with what member i sends."""
    with group.call(what) as tag:
        _exchange_all(group, tag, xs, out)


def _exchange_all(group: Group, tag: int, xs: Sequence[Array], out: Sequence[Array]) -> None:
    others = _others(group)
    group.exchange(tag, {i: xs[i] for i in others}, {i: out[i] for i in others})
    out[group.index][...] = xs[group.index]


def all_reduce(group: Group, x: Array, out: Array, name: str, what: str) -> None:
    """Reduce `x` over the members into every `out`, which may be `x` itself.

    Small arrays: (p - 1) (a + n b). Else reduce-scatter and all-gather:
    2 (p - 1) (a + n / p b).
    """
    channel = group.channel
    if channel is not None:
        made = channel.made.get((what, name, x.dtype, x.shape))
        if made is None or not made(x, out):
            shared.all_reduce(group, channel, (x,), (out,), name, what)
        return
    limit = SMALL_BYTES if group.size > 2 else SMALL_OF_TWO
    if group.size > 1 and is_small(group, x.nbytes, limit):
        small_reduction(group, x, name, what).run(x, out)
        return
    flat, result = x.reshape(-1), out.reshape(-1)
    with group.call(what, zeros_for(name, flat.dtype, flat.size)) as tag:
        if group.size == 1:
            reduced([flat.copy()], name, result)
            return
        if flat.nbytes <= SMALL_BYTES:
            rows = list(np.empty((group.size, flat.size), flat.dtype))
            _gather_all(group, tag, flat, rows)
            reduced(rows, name, result)
            return
        _all_reduce_pieces(group, tag, flat, result, name)


def all_reduce_many(
    group: Group, xs: Sequence[Array], outs: Sequence[Array], name: str, what: str
) -> None:  # fmt: skip
    """`all_reduce` of several arrays of one type, as one vector."""
    if group.channel is not None:
        shared.all_reduce(group, group.channel, xs, outs, name, what)
    elif len(xs) == 1:
        all_reduce(group, xs[0], outs[0], name, what)
    else:
        flat = np.concatenate([x.reshape(-1) for x in xs])
        all_reduce(group, flat, flat, name, what)
        ends = np.cumsum([0, *[x.size for x in xs]]).tolist()
        for out, (a, b) in zip(outs, itertools.pairwise(ends), strict=True):
            out.reshape(-1)[...] = flat[a:b]


def _all_reduce_pieces(group: Group, tag: int, x: Array, out: Array, name: str) -> None:
    """Reduce in pieces; each is gathered while the next one is in flight."""
    started: deque[Pending] = deque(maxlen=MOST_STARTED)
    try:
        _exchange_pieces(group, tag, x, out, name, started)
    except BaseException:
        for pending in started:  # they write to the caller's memory
            pending.give_up()
        raise


def _exchange_pieces(
    group: Group, tag: int, x: Array, out: Array, name: str, started: deque[Pending]
) -> None:  # fmt: skip
    others, own = _others(group), group.index
    count = max(1, CHUNK_BYTES // x.itemsize)
    pieces = [slice(begin, begin + count) for begin in range(0, x.size, count)]
    room = [np.empty((group.size, -(-count // group.size)), x.dtype) for _ in pieces[:2]]

    def scatter(number: int) -> tuple[list[Array], list[Array], Pending]:
        parts = cuts(x[pieces[number]], group.size)
        rows = [row[: parts[own].size] for row in room[number % 2]]
        sends, receives = {i: parts[i] for i in others}, {i: rows[i] for i in others}
        started.append(group.start(tag, sends, receives))
        return parts, rows, started[-1]

    coming, gathered = scatter(0), None
    for number, piece in enumerate(pieces):
        parts, rows, pending = coming
        group.wait(pending)
        if number + 1 < len(pieces):
            coming = scatter(number + 1)
        results = cuts(out[piece], group.size)
        rows[own][...] = parts[own]
        reduced(rows, name, results[own])
        if gathered is not None:
            group.wait(gathered)
        receives = {i: results[i] for i in others}
        started.append(group.start(tag, dict.fromkeys(others, results[own]), receives))
        gathered = started[-1]
    if gathered is not None:
        group.wait(gathered)


def _reduce_parts(group: Group, tag: int, parts: Sequence[Array], name: str) -> Array:
    """The reduction of this member's shard."""
    own = parts[group.index]
    rows = list(np.empty((group.size, own.size), own.dtype))
    _exchange_all(group, tag, parts, rows)
    reduced(rows, name, rows[0])
    return rows[0]


def cuts(flat: Array, count: int) -> list[Array]:
    """A vector in `count` parts of nearly equal length."""
    ends = [flat.size * i // count for i in range(count + 1)]
    return [flat[a:b] for a, b in itertools.pairwise(ends)]


def reduce(group: Group, x: Array, out: Array, root: int, name: str, what: str) -> None:
    """Reduce `x` over the members into `out` of member `root`."""
    flat = x.reshape(-1)
    with group.call(what) as tag:
        if group.index != root:
            group.exchange(tag, {root: flat}, {})
            return
        rows = list(np.empty((group.size, flat.size), flat.dtype))
        group.exchange(tag, {}, {i: rows[i] for i in _others(group)})
        rows[root][...] = flat
        reduced(rows, name, out.reshape(-1))


def reduce_scatter(group: Group, xs: Sequence[Array], out: Array, name: str, what: str) -> None:
    """Reduce the i-th of all members' `xs` into `out` of member i."""
    if group.channel is not None:
        shared.reduce_scatter(group, group.channel, xs, out, name, what)
        return
    with group.call(what) as tag:
        own = _reduce_parts(group, tag, [x.reshape(-1) for x in xs], name)
        out.reshape(-1)[...] = own


def all_gather_bytes(group: Group, data: bytes, what: str) -> list[bytes]:
    """All-gather of bytes, whose lengths may differ between members."""
    own = np.frombuffer(data, np.uint8).copy()
    lengths = np.zeros(group.size, np.int64)
    all_gather(group, np.array([own.size]), list(lengths.reshape(-1, 1)), f"{what}: lengths")
    out = [np.zeros(n, np.uint8) for n in lengths]
    all_gather(group, own, out, what)
    return [each.tobytes() for each in out]


def _others(group: Group) -> list[int]:
    """The other members, starting with the next one, so that not all start with the same."""
    return [(group.index + step) % group.size for step in range(1, group.size)]
