"""Groups ids: by the server that has them, and equal ones."""

from __future__ import annotations

from collections.abc import Callable

from weft.codegen.procedure import Procedure, Ref, Word, i64, pointer, routine, u32
from weft.codegen.table.hashing import AHEAD, mixed, owner_of, prefetch
from weft.codegen.table.layout import Partition, Slot, Unique


@routine(Partition, result=i64)
def partition(f: Procedure, asked: Ref) -> int:
    """Sorts ids by owner and table, in their order otherwise."""
    starts, following = asked["starts"].to(i64), asked["following"].to(i64)
    lists = asked["owners"] * asked["tables"]
    with f.count(lists + 1) as i:
        starts.at(i).store(0)

    def tell(id: Word, i: Word, owner: Word, list_: Word) -> None:
        size = starts.at(list_ + 1)
        size.store(size.load() + 1)

    _each(f, asked, tell)
    with f.count(lists) as i:
        start = starts.at(i).load()
        following.at(i).store(start)
        end = starts.at(i + 1)
        end.store(end.load() + start)
    ordered, order = asked["sorted"].to(i64), asked["order"].to(u32)

    def put(id: Word, i: Word, owner: Word, list_: Word) -> None:
        turn = following.at(list_)
        at = turn.load()
        turn.store(at + 1)
        ordered.at(at).store(id)
        order.at(at).store(i.short())

    _each(f, asked, put)
    return 0


def _each(f: Procedure, asked: Ref, do: Callable[[Word, Word, Word, Word], None]) -> None:
    """Does something with each id, its position, its owner and the number of its list."""
    ids, owners, bounds = asked["ids"].to(i64), asked["owners"], asked["bounds"].to(i64)
    tables = asked["tables"]
    with f.count(tables) as t:
        i, end = f.local(bounds.at(t).load()), bounds.at(t + 1).load()
        with f.repeat() as rounds:
            rounds.leave(i >= end)
            id = ids.at(i).load()
            owner = owner_of(mixed(f, id), owners)
            do(id, i, owner, owner * tables + t)
            i.set(i + 1)


@routine(Unique, result=i64)
def unique(f: Procedure, asked: Ref) -> Word:
    """Distinct ids of each list; how many in all."""
    ids, bounds, slots = asked["ids"].to(i64), asked["bounds"].to(i64), asked["slots"].to(Slot)
    found, inverse = asked["found"].to(i64), asked["inverse"].to(u32)
    seen, mask, starts = asked["seen"].to(i64), asked["mask"], asked["starts"].to(i64)
    size = f.local(0)
    with f.count(asked["lists"]) as number:
        starts.at(number).store(size)
        stamp = (asked["stamp"] + number) << 32
        i, end = f.local(bounds.at(number).load()), bounds.at(number + 1).load()
        with f.repeat() as each:
            each.leave(i >= end)
            later = i + AHEAD
            with f.when(later < end):
                prefetch(f, slots.at(mixed(f, ids.at(later).load()) & mask))
            id = ids.at(i).load()
            at = f.local(mixed(f, id) & mask)
            with f.repeat() as probes:
                slot = slots.at(at)
                probes.leave((slot["place"] ^ stamp) > 0xFFFFFFFF)
                probes.leave(slot["id"].equals(id))
                at.set((at + 1) & mask)
            slot = slots.at(at)
            with f.when((slot["place"] ^ stamp) > 0xFFFFFFFF):
                slot["id"] = id
                slot["place"] = stamp | size
                found.at(size).store(id)
                seen.at(size).store(0)
                size.set(size + 1)
            place = slot["place"] & 0xFFFFFFFF
            times = seen.at(place)
            times.store(times.load() + 1)
            inverse.at(i).store(place.short())
            i.set(i + 1)
    starts.at(asked["lists"]).store(size)
    return size


@routine(pointer, pointer, i64, pointer, pointer, pointer, i64, result=i64)
def list_members(
    f: Procedure, inverse: Word, order: Word, count: Word, members: Word, following: Word,
    listed: Word, distinct: Word,
) -> int:  # fmt: skip
    """Where equal ids came from, in order; `members` tells how many at first, then the starts."""
    starts, turns, total = members.to(i64), following.to(i64), f.local(0)
    with f.count(distinct) as u:
        size = starts.at(u).load()
        starts.at(u).store(total)
        turns.at(u).store(total)
        total.set(total + size)
    starts.at(distinct).store(total)
    with f.count(count) as i:
        turn = turns.at(inverse.to(u32).at(i).load())
        at = turn.load()
        turn.store(at + 1)
        place = f.local(i)
        with f.when(~order.is_null()):
            place.set(order.to(u32).at(i).load())
        listed.to(u32).at(at).store(place.short())
    return 0
