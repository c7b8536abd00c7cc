"""Reads, writes and drops what a table has."""

from __future__ import annotations

from weft.codegen.driver import system
from weft.codegen.procedure import Procedure, Ref, Word, i64, pointer, routine, u8
from weft.codegen.table.hashing import mixed
from weft.codegen.table.layout import PARTS, Collect, Entry, Part, Table
from weft.codegen.table.search import allocated, copy_entry, entry_of, release


@routine(Table, Collect, result=i64)
def collect(f: Procedure, table: Ref, asked: Ref) -> Word:
    """Writes all ids, with their rows, counts and steps; how many."""
    size = f.local(0)
    with f.count(PARTS) as p:
        part = table.field("parts").at(p)
        entries = part["entries"].to(Entry)
        with f.when(~entries.is_null()), f.count(part["mask"] + 1) as i:
            entry = entries.at(i)
            with f.when(entry["seen"].differs(0)):
                asked["ids"].to(i64).at(size).store(entry["id"])
                asked["rows"].to(pointer).at(size).store(entry["row"])
                asked["seen"].to(i64).at(size).store(entry["seen"])
                asked["steps"].to(i64).at(size).store(entry["step"])
                size.set(size + 1)
    return size


@routine(pointer, i64, i64, i64, pointer, result=i64)
def read_rows(
    f: Procedure, rows: Word, count: Word, offset: Word, size: Word, out: Word
) -> int:  # fmt: skip
    """Copies `size` bytes from `offset` of each row; zeros where there is no row."""
    with f.count(count) as i:
        row, to = rows.to(pointer).at(i).load(), out.to(u8).at(i * size)
        with f.when(row.is_null()):
            zero, plain = f.constant(0, "i8"), f.constant(0, "i1")
            f.invoke("void", "llvm.memset.p0.i64", to, zero, size, plain)
        with f.when(~row.is_null()):
            system.copy(f, to, row.to(u8).at(offset), size)
    return 0


@routine(pointer, i64, i64, i64, pointer, result=i64)
def write_rows(
    f: Procedure, rows: Word, count: Word, offset: Word, size: Word, content: Word
) -> int:  # fmt: skip
    """Copies `size` bytes to `offset` of each row, where there is one."""
    with f.count(count) as i:
        row = rows.to(pointer).at(i).load()
        with f.when(~row.is_null()):
            system.copy(f, row.to(u8).at(offset), content.to(u8).at(i * size), size)
    return 0


@routine(Table, i64, result=i64)
def drop(f: Procedure, table: Ref, before: Word) -> Word:
    """Drops ids that were last seen before a step; how many, or -1 if memory is exhausted.

    A part whose ids stay is left as it is; of others the index is written anew, as an entry that
    is taken out would break the probes of those behind it.
    """
    dropped = f.local(0)
    with f.count(PARTS) as p:
        part = table.field("parts").at(p)
        with f.when(_has_older(f, part, before)):
            count = _drop_from(f, part, before)
            with f.when(count.equals(-1)):
                f.give(-1)
            dropped.set(dropped + count)
    return dropped


@routine(Part, i64, result=i64)
def _older(f: Procedure, part: Ref, before: Word) -> Word:
    entries, count = part["entries"].to(Entry), f.local(0)
    with f.when(~entries.is_null()), f.count(part["mask"] + 1) as i:
        entry = entries.at(i)
        with f.when(entry["seen"].differs(0) & (entry["step"] < before)):
            count.set(count + 1)
    return count


def _has_older(f: Procedure, part: Ref, before: Word) -> Word:
    return _older(f, part, before).differs(0)


@routine(Part, i64, result=i64)
def _drop_from(f: Procedure, part: Ref, before: Word) -> Word:
    old, size = part["entries"].to(Entry), part["mask"] + 1
    new = allocated(f, size * 32)
    with f.when(new.is_null()):
        f.give(-1)
    part["entries"] = new
    dropped = f.local(0)
    with f.count(size) as i:
        entry = old.at(i)
        with f.when(entry["seen"].differs(0)):
            stays = entry["step"] >= before
            with f.when(stays):
                id = entry["id"]
                copy_entry(f, entry_of(f, part, id, mixed(f, id)), entry)
            with f.when(~stays):
                dropped.set(dropped + 1)
                row = entry["row"]
                with f.when(~row.is_null()):
                    row.to(pointer).store(part["free"])
                    part["free"] = row
                    part["rows"] = part["rows"] - 1
    release(f, old)
    part["used"] = part["used"] - dropped
    return dropped


@routine(Table, result=i64)
def clear(f: Procedure, table: Ref) -> int:
    """Gives all memory back; the table is empty."""
    with f.count(PARTS) as p:
        part = table.field("parts").at(p)
        release(f, part["entries"])
        block = f.local(part["blocks"])
        with f.repeat() as rounds:
            rounds.leave(block.is_null())
            following = block.to(pointer).load()
            release(f, block)
            block.set(following)
        for name in ("entries", "free", "fresh", "blocks"):
            part[name] = f.null()
        for name in ("mask", "used", "rows", "left"):
            part[name] = 0
    return 0
