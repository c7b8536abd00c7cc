"""Finds the rows of ids, and makes those that are missing."""

from __future__ import annotations

from typing import Final

from weft.codegen.procedure import Procedure, Ref, Word, i64, pointer, routine
from weft.codegen.table.hashing import AHEAD, mixed, part_of, prefetch
from weft.codegen.table.layout import FIRST_ENTRIES, Entry, Part, Search, Table


def entry_of(f: Procedure, part: Ref, id: Word, hash: Word) -> Ref:
    """The entry that an id has, or would get."""
    entries, mask = part["entries"].to(Entry), part["mask"]
    at = f.local(hash & mask)
    with f.repeat() as rounds:
        entry = entries.at(at)
        rounds.leave(entry["seen"].equals(0))
        rounds.leave(entry["id"].equals(id))
        at.set((at + 1) & mask)
    return entries.at(at)


LARGE: Final = 1 << 21
"""Bytes of a huge page, of which much memory is made: an index is read at random."""
_HUGE_PAGES: Final = 14  # MADV_HUGEPAGE


def allocated(f: Procedure, size: Word, zeros: bool = True) -> Word:
    """Memory, of zeros if wanted; null if there is none."""
    place = f.local(f.null())
    with f.when(size < LARGE):
        place.set(f.invoke("ptr", "aligned_alloc", f.constant(64), (size + 63) & -64))
    with f.when(size >= LARGE):
        whole = (size + (LARGE - 1)) & -LARGE
        place.set(f.invoke("ptr", "aligned_alloc", f.constant(LARGE), whole))
        with f.when(~place.is_null()):
            if f.machine.system == "linux":
                f.invoke("i32", "madvise", place, whole, f.constant(_HUGE_PAGES, "i32"))
    if zeros:
        with f.when(~place.is_null()):
            zero, plain = f.constant(0, "i8"), f.constant(0, "i1")
            f.invoke("void", "llvm.memset.p0.i64", place, zero, size, plain)
    return place


def release(f: Procedure, place: Word) -> None:
    """Gives memory back."""
    f.invoke("void", "free", place)


@routine(Part, i64, result=i64)
def resize(f: Procedure, part: Ref, count: Word) -> int:
    """Moves the entries of a part to a larger index; 0 if there is memory for it."""
    old, size = part["entries"].to(Entry), part["mask"] + 1
    new = allocated(f, count * 32)
    with f.when(new.is_null()):
        f.give(1)
    part["entries"], mask = new, count - 1
    part["mask"] = mask
    with f.when(~old.is_null()):
        with f.count(size) as i:
            entry = old.at(i)
            with f.when(entry["seen"].differs(0)):
                id = entry["id"]
                copy_entry(f, entry_of(f, part, id, mixed(f, id)), entry)
        release(f, old)
    return 0


def copy_entry(f: Procedure, to: Ref, entry: Ref) -> None:
    """Copies an entry."""
    for name in ("id", "row", "seen", "step"):
        to[name] = entry[name]


@routine(Table, Part, result=pointer)
def new_row(f: Procedure, table: Ref, part: Ref) -> Word:
    """Memory for a row: one that was given back, else the next of the block."""
    free = part["free"]
    with f.when(~free.is_null()):
        part["free"] = free.to(pointer).load()
        f.give(free)
    size = table["row_bytes"]
    with f.when(part["left"].equals(0)):
        # Blocks grow with the part: a quarter of its rows, so that a fifth of the memory is unused.
        some, most = table["block_rows"], table["most_rows"]
        wanted = f.select(part["rows"] >> 2 > some, part["rows"] >> 2, some)
        rows = f.select(wanted > most, most, wanted)
        block = allocated(f, rows * size + 64, zeros=False)  # it begins with a line for the list
        with f.when(block.is_null()):
            f.give(block)
        block.to(pointer).store(part["blocks"])
        part["blocks"] = block
        part["fresh"] = Ref(f, f.offset(block.reg, 64), pointer)
        part["left"] = rows
    row = part["fresh"]
    part["fresh"] = Ref(f, f.offset(row.reg, size.reg), pointer)
    part["left"] = part["left"] - 1
    return row


@routine(Table, Part, Entry, result=i64)
def admit(f: Procedure, table: Ref, part: Ref, known: Ref) -> int:
    """Gives an id a row; 0 if there is memory for it."""
    row = new_row(f, table, part)
    with f.when(row.is_null()):
        f.give(1)
    known["row"] = row
    part["rows"] = part["rows"] + 1
    table["fill"].call("void", row, known["id"] ^ table["seed"])
    return 0


@routine(Search, result=i64)
def search(f: Procedure, asked: Ref) -> int:
    """Finds the rows of ids in tables; 0, or 1 if memory is exhausted."""
    tables, bounds = asked["tables"].to(pointer), asked["bounds"].to(i64)
    with f.count(asked["count"]) as t:
        table, begin, end = tables.at(t).load(), bounds.at(t).load(), bounds.at(t + 1).load()
        with f.when(_search_one(f, table, asked, begin, end).differs(0)):
            f.give(1)
    return 0


@routine(Table, Search, i64, i64, result=i64)
def _search_one(f: Procedure, table: Ref, asked: Ref, begin: Word, end: Word) -> int:
    ids, rows = asked["ids"].to(i64), asked["rows"].to(pointer)
    first, parts = asked["first"], asked["last"] - asked["first"]
    insert, least = asked["insert"].differs(0), table["admit"]
    i = f.local(begin)
    with f.repeat() as rounds:
        rounds.leave(i >= end)
        later = i + AHEAD
        with f.when(later < end):
            hash = mixed(f, ids.at(later).load())
            with f.when((part_of(hash) - first) < parts):
                part = table.field("parts").at(part_of(hash))
                prefetch(f, part["entries"].to(Entry).at(hash & part["mask"]))
        id = ids.at(i).load()
        hash = mixed(f, id)
        with f.when((part_of(hash) - first) < parts):
            part = table.field("parts").at(part_of(hash))
            row = f.local(f.null())
            with f.when(insert):
                entry = _inserted(f, part, id, hash)
                _see(f, table, asked, entry, i)
                is_new = entry["row"].is_null() & (entry["seen"] >= least)
                with f.when(is_new), f.when(admit(f, table, part, entry).differs(0)):
                    f.give(1)
                row.set(entry["row"])
            with f.when(~insert), f.when(~part["entries"].is_null()):
                # The row of an entry that is free is null
                row.set(entry_of(f, part, id, hash)["row"])
            rows.at(i).store(row)
        i.set(i + 1)
    return 0


def _inserted(f: Procedure, part: Ref, id: Word, hash: Word) -> Ref:
    """The entry of an id, made if need be; leaves the function if memory is exhausted."""
    size = part["mask"] + 1
    # At most five eighths are used: some 4 probes for an id that is not there
    full = part["entries"].is_null() | ((part["used"] + 1) * 8 > size * 5)
    with f.when(full):
        more = f.select(part["entries"].is_null(), FIRST_ENTRIES, size * 2)
        with f.when(resize(f, part, more).differs(0)):
            f.give(1)
    entry = entry_of(f, part, id, hash)
    with f.when(entry["seen"].equals(0)):
        entry["id"] = id
        entry["row"] = f.null()
        part["used"] = part["used"] + 1
    return entry


def _see(f: Procedure, table: Ref, asked: Ref, entry: Ref, i: Word) -> None:
    times, step = f.local(1), f.local(table["updates"])
    seen, steps = asked["seen"].to(i64), asked["steps"].to(i64)
    with f.when(~seen.is_null()):
        times.set(seen.at(i).load())
    with f.when(~steps.is_null()):
        step.set(steps.at(i).load())
    entry["seen"] = entry["seen"] + times
    entry["step"] = step
