"""What tables of rows are made of in memory, for Python and native code.

A table has `PARTS` parts, to which ids are assigned by their hash: threads work on different ones,
and what grows is copied a part at a time. A part has entries, an open-addressing index that is
probed linearly, and rows, which never move. An id that was seen too rarely has an entry but no row.
"""

from __future__ import annotations

import ctypes
from typing import Final

from weft.codegen.procedure import i64, pointer

PARTS: Final = 16
PART_SHIFT: Final = 60  # the highest 4 bits of a hash
OWNER_SHIFT: Final = 36
OWNER_BITS: Final = (1 << (PART_SHIFT - OWNER_SHIFT)) - 1
"""Which bits of a hash tell an id's server; others tell its part there and its place in that."""
FIRST_ENTRIES: Final = 32


class Entry(ctypes.Structure):
    """An id. 32 bytes, so that a cache line has two."""

    _fields_ = (
        ("id", i64),
        ("row", pointer),  # null before it is admitted
        ("seen", i64),  # how often; 0 where there is no id
        ("step", i64),  # when last
    )


class Part(ctypes.Structure):
    """A share of the ids. 64 bytes: one cache line."""

    _fields_ = (
        ("entries", pointer),
        ("mask", i64),  # their number less 1
        ("used", i64),  # how many have an id
        ("rows", i64),  # how many of these have a row
        ("free", pointer),  # a list of rows that were given back; each begins with the next
        ("fresh", pointer),  # rows that were never used
        ("left", i64),  # and how many
        ("blocks", pointer),  # a list of the memory of rows; each begins with the next
    )


class Table(ctypes.Structure):
    """A table of rows."""

    _fields_ = (
        ("row_bytes", i64),  # a multiple of 16
        ("block_rows", i64),  # of the first blocks of memory for rows
        ("most_rows", i64),  # of a block
        ("fill", pointer),  # (row, id ^ seed): writes the first content of a row
        ("seed", i64),
        ("updates", i64),  # how many there were
        ("admit", i64),  # how often an id must be seen before it gets a row
        ("unused", i64),
        ("parts", Part * PARTS),
    )


class Search(ctypes.Structure):
    """What `search` is asked of several tables."""

    _fields_ = (
        ("tables", pointer),  # the address of each
        ("count", i64),
        ("bounds", pointer),  # where the ids of each begin, and the end
        ("ids", pointer),
        ("rows", pointer),  # the address of each id's row; null where it has none
        ("seen", pointer),  # how often each id was seen; null if once
        ("steps", pointer),  # when each id was seen; null if now
        ("first", i64),  # the parts whose ids are looked up, others are left out
        ("last", i64),
        ("insert", i64),  # whether ids are counted, and rows made
    )


class Partition(ctypes.Structure):
    """What `partition` is asked: ids of several tables, those of a table one after the other."""

    _fields_ = (
        ("ids", pointer),
        ("tables", i64),
        ("bounds", pointer),  # where the ids of each table begin, and the end
        ("owners", i64),
        ("sorted", pointer),  # the ids by owner, those of an owner by table
        ("order", pointer),  # 32 bits each: where a sorted id came from
        ("starts", pointer),  # where those of each owner and table begin, and the end
        ("following", pointer),  # as many as `starts`, for use meanwhile
    )


class Unique(ctypes.Structure):
    """What `unique` is asked: several lists of ids, one after the other."""

    _fields_ = (
        ("ids", pointer),
        ("lists", i64),
        ("bounds", pointer),  # where each list begins, and the end
        ("slots", pointer),  # of `Slot`: at least twice the longest list, a power of 2
        ("mask", i64),
        ("stamp", i64),  # of the first list here: slots of other stamps are free
        ("found", pointer),  # distinct ids of each list in the order of their first occurrence
        ("starts", pointer),  # where those of each list begin, and the end
        ("inverse", pointer),  # 32 bits each: the place of an id in `found`
        ("seen", pointer),  # how often each distinct id occurs
    )


class Slot(ctypes.Structure):
    """A distinct id; 16 bytes."""

    _fields_ = (("id", i64), ("place", i64))  # stamp << 32 | its place


class Collect(ctypes.Structure):
    """What `collect` is asked."""

    _fields_ = (
        ("ids", pointer),
        ("rows", pointer),
        ("seen", pointer),
        ("steps", pointer),
    )
