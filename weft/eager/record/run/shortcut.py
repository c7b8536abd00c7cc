"""The shortest way from pending calls to their values: code written for a structure that recurs.

A small program takes less time than recognizing it does. So once a program has run some times, a
function is written that checks, without a loop, that the pending calls are those of the program,
and runs it. The same is done for lists of library kernels; those in ever new sizes share one.
What has a path of its own is left to the usual way: programs of several threads, calls of traced
functions, in-place changes of much memory. Other in-place changes are made in a copy, which becomes
the tensor's memory.

Such a function defers no signals. Python handles them, switches threads and collects garbage after
calls only, so what must be whole has no call inside: setting addresses and entering the program,
and giving the results to their values. Who computes the same calls in between replaces the list of
pending calls: then nothing is given.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Sequence
from struct import Struct
from typing import Any, ClassVar, Final

import numpy as np

from weft import config
from weft.eager.record.call.pattern import Pattern
from weft.eager.record.call.plan import Plan
from weft.eager.record.listing.listing import Listing
from weft.eager.record.memory import memory_pool
from weft.eager.record.pending.lazy import Alias, Drawn, Lazy, Number, Record
from weft.eager.record.pending.loop_cut import FEW
from weft.eager.record.pending.state import State, computing, set_shortcut, trace
from weft.eager.record.recognition.structure import Structure
from weft.eager.record.run.compiled_tier import Compiled
from weft.eager.record.run.parameter_cache import Watch
from weft.eager.record.run.stitched_tier import (
    MOST_OF_SHORT,
    Stitched,
    is_early,
    is_of_many,
    note_run,
    types_of,
)
from weft.eager.record.run.tier import Tier
from weft.host.compiled_method import compiled_function
from weft.ir.shape import known, size
from weft.runtime.executable import Direct
from weft.runtime.flight import aloft, land
from weft.runtime.measurement.profile import watchers
from weft.runtime.memory.address import ADDRESS, ADDRESS_NAMES
from weft.runtime.memory.recycled import SMALLEST
from weft.transport import session

MOST: Final = 128  # shortcuts; the oldest goes first
MOST_COPIED: Final = 1 << 16  # bytes of tensors that a program changes in place
MOST_WRITTEN: Final = 1 << 20  # the same of a list, whose kernels write the copies
MOST_PAIRS: Final = 6  # leaves that are compared in pairs
MOST_CALLS: Final = 512  # their code is some thousands of lines, compiled in 0.1 s
RUNS: Final = 8  # of a program before its shortcut is written, which takes as long as many runs
LIST_RUNS: Final = 32  # of a list: as many earn it

Run = Callable[[State, list[Record]], bool]
_found: Final[OrderedDict[tuple[Plan | Pattern, ...], Run]] = OrderedDict()
_learned: Final[dict[tuple[Plan | Pattern, ...], int]] = {}  # how often a list might have been


def taken(now: State) -> bool:
    """Compute all that is pending in a thread, if there is a shortcut; whether it was."""
    records = now.pending
    plans = tuple([record.plan for record in records])
    run = _found.get(plans) or _found.get(tuple([plan.pattern for plan in plans]))
    return run is not None and run(now, records)


set_shortcut(taken)


def learn(structure: Structure, tier: Tier) -> None:
    """Write the shortcut of a structure that has run often enough, if it can have one.

    Args:
        tier: what computes it next.
    """
    if structure.memo is None:
        return
    if type(tier) is Compiled:
        _learn_program(structure, tier)
    elif type(tier) is Stitched and structure.memo.listings:
        _learn_list(structure, structure.memo.listings[0])


def _learn_program(structure: Structure, tier: Compiled) -> None:
    if tier.runs < RUNS or tier.runs & (tier.runs - 1):
        return
    records, direct = _pending(structure), tier.direct
    if direct is not None and _is_suited(structure, records) and _is_little(structure, MOST_COPIED):
        key = tuple([record.plan for record in records])
        _keep(key, _OfProgram(structure, records, direct, tier.watch))


def _learn_list(structure: Structure, listing: Listing) -> None:
    records = _pending(structure)
    if len(records) > MOST_CALLS:
        return
    of_many, plans = is_of_many(structure), tuple([record.plan for record in records])
    key = tuple([plan.pattern for plan in plans]) if of_many else plans
    if len(_learned) >= MOST:
        _learned.clear()
    _learned[key] = times = _learned.get(key, 0) + 1
    is_short = len(records) <= MOST_OF_SHORT
    if times & (times - 1) or not (times >= LIST_RUNS or (of_many and is_short)):
        return
    if not is_short and any([y.tracked for y in structure.outputs]):
        return  # what takes long is kept for a backward pass: `kept_result`
    if _is_suited(structure, records) and _is_plain(structure, listing):
        _keep(key, _OfList(structure, records, listing))


def _pending(structure: Structure) -> tuple[Record, ...]:
    """The calls that were pending: those of the structure, and some whose results are unused."""
    taken = trace.now.taken
    return structure.records if taken is None else tuple(taken.records)


def _keep(key: tuple[Plan | Pattern, ...], writer: _Writer) -> None:
    _found[key] = writer.function()
    if len(_found) > MOST:
        _found.popitem(last=False)


def _is_plain(structure: Structure, listing: Listing) -> bool:
    """Whether a list needs nothing but sizes, the leaves, and memory for what is wanted."""
    return (
        not (listing.fills or listing.rest or int(config.get("debug")))
        and _is_little(structure, MOST_WRITTEN)
        and not any([t.dtype.is_floating and t.dtype.size < 4 for t in types_of(structure)])
        and {value for value, _ in listing.owned}.issubset(listing.outputs)
        and {*range(len(structure.leaves)), *dict(listing.owned)}.issuperset(listing.outputs)
    )


def _is_little(structure: Structure, most: int) -> bool:
    """Whether little memory is changed in place."""
    homes = [structure.leaves[place].array for place in structure.homes if place >= 0]
    return sum([0 if array is None else array.nbytes for array in homes]) <= most


def _is_suited(structure: Structure, records: Sequence[Record]) -> bool:
    """Whether its calls are few of these, which are all that is pending, and its leaves plain."""
    return (
        len(records) <= MOST_CALLS
        and set(structure.records).issubset(records)
        and not any([record.plan.follows for record in structure.records])
        and not any(structure.devices)
        and all([type(x) in (Lazy, Number, Alias, Drawn) for x in structure.leaves])
    )


class _Writer(ABC):
    """Writes the function of a structure.

    In its text `r` are records, `x` leaves, `a` their arrays, `y` results, `b` the arrays of those
    that are wanted, `o` whatever holds one.
    """

    def __init__(self, structure: Structure, records: Sequence[Record]) -> None:
        self._structure = structure
        self._records = records  # all that is pending; nothing reads the results of the others
        self._lines: list[str] = []
        self._place = {record: i for i, record in enumerate(records)}
        self._leaf = {x: i for i, x in enumerate(structure.leaves)}
        self._output = {y: i for i, y in enumerate(structure.outputs)}
        self._home = dict(zip(structure.outputs, structure.homes, strict=True))
        self._met: set[str] = set()
        self._names: dict[str, Any] = {
            "FEW": FEW, "Lazy": Lazy, "Number": Number, "Alias": Alias, "Drawn": Drawn,
            "ndarray": np.ndarray,
            "aloft": aloft, "land": land, "watchers": watchers, "session": session,
            "computing": computing, "empty": memory_pool.empty, "small": np.empty, **ADDRESS_NAMES,
        }  # fmt: skip

    _locks: ClassVar[str]
    """What is held meanwhile."""

    @abstractmethod
    def _run(self) -> None:
        """Adds the lines that run it."""
        ...

    def function(self) -> Run:
        """The function: whether it has computed what is pending."""
        self._check()
        self._run()
        lines = [
            "if watchers or session.monitors or now.due: return False",
            f"with {self._locks}:",
            *["    " + line for line in self._lines],
        ]
        return compiled_function(__name__, "run", ["now", "records"], lines, self._names)

    def _refuse(self, condition: str) -> None:
        self._lines.append(f"if {condition}: return False")

    def _check(self) -> None:
        records, needed = self._records, set(self._structure.records)
        self._refuse("now.pending is not records")
        self._lines.append("changes = len(now.changes)")
        self._refuse(f"len(records) != {len(records)}")  # those of a handler came since
        self._lines += [f"r{i} = records[{i}]" for i in range(len(records))]
        for i, record in enumerate(records):
            if record.inputs and record in needed:
                names = [self._name(x) for x in record.inputs]
                self._lines.append(
                    f"{''.join([f'i{j}, ' for j in range(len(names))])}= r{i}.inputs"
                )
                for j, (x, name) in enumerate(zip(record.inputs, names, strict=True)):
                    self._check_input(f"i{j}", x, name)
        for i, record in enumerate(records):
            for j, result in enumerate(record.results):
                if record in needed:
                    self._check_result(i, j, result())
                else:
                    self._check_unused(i, j)
        self._check_apart()

    def _name(self, x: Lazy) -> str:
        if x in self._leaf:
            return f"x{self._leaf[x]}"
        assert x.record is not None
        return f"y{self._place[x.record]}_{x.index}"

    def _check_input(self, given: str, x: Lazy, name: str) -> None:
        if name in self._met:
            self._refuse(f"{given} is not {name}")
            return
        self._met.add(name)
        self._lines.append(f"{name} = {given}")
        if x not in self._leaf:
            record = x.record
            assert record is not None
            other = "" if record.plan.single else f" or {name}.index != {x.index}"
            self._refuse(f"{name}.record is not r{self._place[record]}{other}")
            return
        array = f"a{self._leaf[x]}"
        self._lines.append(f"{array} = {name}.array")
        self._refuse(f"{name}.__class__ is not {type(x).__name__} or {array} is None")
        if type(x) is Number:
            return
        alias = f" or {name}.base.array is not {array}" if type(x) is Alias else ""
        self._refuse(f"{array}.__class__ is not ndarray{alias}")
        self._refuse(f"not {array}.flags.c_contiguous")

    def _check_unused(self, i: int, j: int) -> None:
        """Whether no tensor holds a result that is not computed."""
        self._lines += [
            f"o = r{i}.results[{j}]()",
            "if o is not None and o.owner is not None and o.owner() is not None: return False",
        ]

    def _check_result(self, i: int, j: int, y: Lazy | None) -> None:
        """Whether the same results are held by tensors, and tracked, as in the structure."""
        name = f"y{i}_{j}"
        met = name in self._met
        if not met:
            self._lines.append(f"{name} = r{i}.results[{j}]()")
        if y is not None and y in self._output:
            absent = "" if met else f"{name} is None or "
            freed = f" or r{i}.freed is not None" if y.tracked else ""
            home = self._home[y]
            other = f"{name}.home is not " + (
                f"x{home} or x{home}.loan is not None" if home >= 0 else "None"
            )
            self._refuse(
                f"{absent}{name}.array is not None or {name}.tracked is not {y.tracked} "
                f"or {other}{freed}"
            )
            self._lines.append(f"o = {name}.owner")
            self._refuse("o is None or o() is None")
            return
        if not met:
            self._lines.append(f"if {name} is not None:")
        indent = "" if met else "    "
        self._lines.append(f"{indent}o = {name}.owner")
        tracked = "" if y is None else f" or {name}.tracked is not {y.tracked}"
        self._lines.append(
            f"{indent}if {name}.array is not None{tracked} or (o is not None and o() is not None): "
            "return False"
        )

    def _check_apart(self) -> None:
        """Whether no two leaves share an array."""
        leaves = self._structure.leaves
        arrays = [f"a{i}" for i, x in enumerate(leaves) if type(x) is not Number]
        if len(arrays) > MOST_PAIRS:
            ids = ", ".join([f"id({a})" for a in arrays])
            self._refuse(f"len({{{ids}}}) < {len(arrays)}")
            return
        for i, a in enumerate(arrays):
            for other in arrays[:i]:
                self._refuse(f"{a} is {other}")

    def _address(self, array: str, name: str) -> None:
        self._lines.append(f"{name} = {ADDRESS.format(array)}")

    def _give(self) -> None:
        """Gives the results to their values."""
        structure, lines = self._structure, self._lines
        for i, y in enumerate(structure.outputs):
            name = self._name(y)
            lines.append(f"{name}.array = b{i}")
            if structure.homes[i] >= 0:
                lines.append(f"{name}.home = None")
            if not y.tracked:
                lines.append(f"{name}.record = None")
        lines += [
            f"now.pending = records[{len(self._records)}:]",
            "now.changes = now.changes[changes:]",
            "now.limit, now.loop_start, now.backward_passes = FEW, None, 0",
            "return True",
        ]


class _OfProgram(_Writer):
    """For a program of these sizes."""

    _locks: ClassVar[str] = "computing, lock"

    def __init__(
        self, structure: Structure, records: Sequence[Record], direct: Direct, watch: Watch | None
    ) -> None:
        super().__init__(structure, records)
        self._direct = direct
        self._watch = watch
        self._names |= {
            "lock": direct.lock, "enter": direct.enter, "pointer": direct.pointer,
            "addresses": direct.addresses, "executable": direct.executable, "watch": watch,
        }  # fmt: skip

    def _run(self) -> None:
        structure, direct, lines = self._structure, self._direct, self._lines
        if self._watch is not None:
            leaves = "".join([f"x{i}, " for i in range(len(structure.leaves))])
            self._refuse(f"executable.kept is None or not watch.holds(({leaves}))")
        binding: list[str] = []
        for i, y in enumerate(structure.outputs):
            shape, dtype = known(y.type.shape), y.type.dtype.numpy
            little = size(shape) * dtype.itemsize < SMALLEST
            self._names |= {f"s{i}": shape, f"d{i}": dtype}
            home = structure.homes[i]
            if home >= 0:
                lines.append(f"a{home} = b{i} = a{home}.copy()")
            else:
                lines.append(f"b{i} = {'small' if little else 'empty'}(s{i}, d{i})")
            self._address(f"b{i}", f"q{i}")
            binding.append(f"addresses[{direct.outputs[i]}] = q{i}")
        for place, number in direct.feeds:
            self._address(f"a{place}", f"p{place}")
            binding.append(f"addresses[{number}] = p{place}")
        lines.append("if aloft: land()")
        self._refuse("now.pending is not records")
        lines += binding
        lines.append("state = enter(pointer)")
        self._refuse("state or now.pending is not records")
        self._give()


class _OfList(_Writer):
    """For a list of library kernels, in any sizes that it fits."""

    _locks: ClassVar[str] = "computing"

    def __init__(self, structure: Structure, records: Sequence[Record], listing: Listing) -> None:
        super().__init__(structure, records)
        self._listing = listing
        self._needed = [self._place[record] for record in structure.records]
        count = len(structure.leaves) + len(listing.owned)
        self._names |= {
            "join": b"".join, "pack": Struct(f"{count}q").pack, "compute": listing.kernels.run,
            "array": np.array,
        }  # fmt: skip

    def _run(self) -> None:
        structure, listing, lines = self._structure, self._listing, self._lines
        sizes = "".join([f"r{i}.plan.packed, " for i in self._needed])
        lines.append(f"sizes = join(({sizes}))")
        self._refuse(f"len(sizes) != {listing.bytes}")
        own: dict[int, int] = {}  # whose results these values are
        for i, (value, kind) in enumerate(listing.owned):
            own[value] = i
            place = self._needed[kind.record]
            self._names[f"d{i}"] = kind.type(structure.records).dtype.numpy
            of = f"plan.types[{kind.place}]" if kind.place >= 0 else f"inputs[{~kind.place}].type"
            # Sizes are not known here: memory of scalars is small.
            where = "empty" if kind.type(structure.records).shape else "small"
            lines.append(f"m{i} = {where}(r{place}.{of}.shape, d{i})")
            self._address(f"m{i}", f"q{i}")
        for i in range(len(structure.leaves)):
            self._address(f"a{i}", f"p{i}")
        places = [f"p{i}, " for i in range(len(structure.leaves))]
        places += [f"q{i}, " for i in range(len(listing.owned))]
        self._refuse(f"not compute(sizes, pack({''.join(places)}))")
        for i, (y, value) in enumerate(zip(structure.outputs, listing.outputs, strict=True)):
            shape, number = f"{self._name(y)}.type.shape", own.pop(value, None)
            if number is not None:  # the others that have this memory are copies
                lines.append(f"b{i} = c{value} = m{number}")
                lines.append(f"if b{i}.shape != {shape}: b{i} = ndarray({shape}, d{number}, b{i})")
            else:
                source = f"a{value}" if value < len(structure.leaves) else f"c{value}"
                lines.append(f"b{i} = array({source}).reshape({shape})")
        self._refuse("now.pending is not records")
        self._give()

    def function(self) -> Run:
        """See `_Writer`."""
        run, needed = super().function(), self._needed

        def counted(now: State, records: list[Record]) -> bool:
            plans = tuple([records[i].plan for i in needed])
            return is_early(plans) and run(now, records) and note_run(plans)

        return counted
