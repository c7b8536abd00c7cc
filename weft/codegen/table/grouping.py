"""Groups ids: by the server that has them, and equal ones."""

from __future__ import annotations

from weft.codegen.procedure import Procedure, Ref, Word, i64, routine, u32
from weft.codegen.table.hashing import AHEAD, mixed, owner_of, prefetch
from weft.codegen.table.layout import MOST_OWNERS, Partition, Slot, Unique


@routine(Partition, result=i64)
def partition(f: Procedure, asked: Ref) -> int:
    """Sorts ids by owner, in their order otherwise."""
    ids, count, owners = asked["ids"].to(i64), asked["count"], asked["owners"]
    order, starts = asked["order"].to(u32), asked["starts"].to(i64)
    with f.count(owners + 1) as i:
        starts.at(i).store(0)
    with f.count(count) as i:
        size = starts.at(owner_of(mixed(f, ids.at(i).load()), owners) + 1)
        size.store(size.load() + 1)
    following = f.room(i64, MOST_OWNERS)
    with f.count(owners) as i:
        following.at(i).store(starts.at(i).load())
        end = starts.at(i + 1)
        end.store(end.load() + starts.at(i).load())
    ordered = asked["sorted"].to(i64)
    with f.count(count) as i:
        id = ids.at(i).load()
        turn = following.at(owner_of(mixed(f, id), owners))
        at = turn.load()
        turn.store(at + 1)
        ordered.at(at).store(id)
        order.at(at).store(i.short())
    return 0


@routine(Unique, result=i64)
def unique(f: Procedure, asked: Ref) -> Word:
    """Distinct ids in the order of their first occurrence; how many."""
    ids, count, slots = asked["ids"].to(i64), asked["count"], asked["slots"].to(Slot)
    found, inverse = asked["found"].to(i64), asked["inverse"].to(u32)
    seen, mask = asked["seen"].to(i64), asked["mask"]
    stamp = asked["stamp"] << 32
    size = f.local(0)
    with f.count(count) as i:
        later = i + AHEAD
        with f.when(later < count):
            prefetch(f, slots.at(mixed(f, ids.at(later).load()) & mask))
        id = ids.at(i).load()
        at = f.local(mixed(f, id) & mask)
        with f.repeat() as rounds:
            slot = slots.at(at)
            rounds.leave((slot["place"] ^ stamp) > 0xFFFFFFFF)
            rounds.leave(slot["id"].equals(id))
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
    return size
