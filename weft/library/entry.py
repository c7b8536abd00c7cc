"""Entries of the library: the kernels of a form, for many sizes.

A kernel is written once for extents; what the generator found out while it wrote (guards) tells for
which other sizes it holds. Sizes that it does not hold for get another variant. Variants are kept
on disk, so that the next process writes none.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Final

from weft.codegen.copy import copy_kernel
from weft.codegen.lower import lower, written
from weft.codegen.target import Target
from weft.errors import CompileError
from weft.ir.extent import Extents
from weft.library import background
from weft.library.form import Form, form_of, resized
from weft.library.form_text import group_at
from weft.library.formula import Choice, packed
from weft.library.looser_form import frame, looser
from weft.library.variant import Code, Variant, code_of, codes_anew, from_data, variant_of
from weft.passes.group import Group
from weft.passes.launch import Kernel
from weft.runtime.compilation import compiler
from weft.runtime.compilation.cache import digest
from weft.runtime.compilation.fingerprint import UNKNOWN, compiler_digest, text_of
from weft.runtime.compilation.pack import Pack, pack_of
from weft.runtime.execution import driver

MOST_FORMS: Final = 1 << 12  # forgotten together
MOST_VARIANTS: Final = 64  # beyond these, a size gets kernels of its own
"""A matmul of any sizes has one for each number of rows of its tiles, and several more."""
MOST_OWN: Final = 64
LEAST: Final = 2  # sizes of one are part of the form


class Entry:
    """The variants of a form.

    Attributes:
        text: the form; `None` if it has no text, and so is not kept.
        variants: for many sizes, the latest first, without those in a pack.
        choice: those that the stitcher chooses from.
    """

    def __init__(self, form: Form, text: str | None, listed: str | None, target: Target) -> None:
        self._target = target
        self._key = form.key
        self.text = text
        self._anew = anew = bool(_anew)
        self._listed = [] if listed is None else _from_lines(listed)
        self._packed: list[Variant] = []  # those of the list that sizes have asked for
        self.variants: Final[list[Variant]] = []
        self._asked = anew or self.text is None  # the cache on disk: a pack may make it needless
        self._own: dict[tuple[int, ...], Variant] = {}  # for one size each
        self._sizes = len(form.sizes)
        self._symbolic = True
        self.choice: Final = Choice()
        if not self._listed:
            self._ask()
        self._offer()

    def _ask(self) -> Sequence[Variant]:
        """What this process has written, and earlier ones, which is read once."""
        if not self._asked:
            self._asked = True
            self.variants.extend(_kept(self.key, self._target))
        return self.variants

    def _offer(self) -> None:
        found = [v for v in (*self._packed, *self.variants, *self._own.values()) if v.table]
        values = max([variant.value_count for variant in found], default=0)
        self.choice.fill([variant.table for variant in found], self._sizes, values)

    def add(self, group: Group, places: Sequence[int], sizes: tuple[int, ...]) -> None:
        """Adds a variant for sizes that the stitcher has found none for.

        Args:
            group: one of this form.
            places: the group's own sizes, in the order of the form; they may be extents.

        Raises:
            CompileError: there is no kernel for it.
        """
        found = self._own.get(sizes) or self._holding(sizes)
        if found is None:
            driver.prestart()  # compilers start while kernels are written
            background.begin(self._target)
            found = self._made(group, places, sizes)
        self._take(found, sizes)

    def expect(self, sizes: tuple[int, ...]) -> None:
        """Offers a variant for these sizes, if one is there and none is offered."""
        given = packed(sizes)
        offered = [v for v in (*self._packed, *self.variants) if v.table]
        if sizes not in self._own and not any([v.holds(given) for v in offered]):
            found = self._holding(sizes)
            if found is not None:
                self._take(found, sizes)

    def _take(self, found: Variant, sizes: tuple[int, ...]) -> None:
        """Offers a variant for these sizes."""
        if not found.has_extents and sizes not in self._own:
            if len(self._own) >= MOST_OWN:
                del self._own[next(iter(self._own))]
            self._own[sizes] = found
        self._offer()

    def _holding(self, sizes: tuple[int, ...]) -> Variant | None:
        """A variant that is there for these sizes."""
        given = packed(sizes)
        for variant in self._candidates(sizes):
            if not variant.table:
                own = variant.at(sizes)
                if own is not None:
                    return own
            elif variant.holds(given):
                return variant
        return None

    def _made(self, group: Group, places: Sequence[int], sizes: tuple[int, ...]) -> Variant:
        """A new variant for these sizes."""
        if self._symbolic and len(self.variants) < MOST_VARIANTS:
            made = self._written(group, places, sizes)
            if made is not None and made.table and made.holds(packed(sizes)):
                return made
            own = None if made is None or made.table else made.at(sizes)
            if own is not None:
                return own
        own = self._for_one_size(group, places, sizes)
        self._begin(own)
        return own

    def _candidates(self, sizes: Sequence[int]) -> Iterator[Variant]:
        yield from self._packed
        yield from self._unpacked(sizes)
        yield from self._ask()

    def _unpacked(self, sizes: Sequence[int]) -> Iterator[Variant]:
        """Makes variants of the list in the pack, those that were written for similar sizes first.

        They are tables and formulas, of which a process needs few.
        """
        pack = pack_of(self._target)
        if self._listed and pack is not None:
            code = functools.partial(_in_pack, pack, self._target)
            self._listed.sort(key=lambda each: -_distance(each[0], sizes))
            while self._listed:
                self._packed.append(from_data(json.loads(self._listed[-1][1]), code))
                del self._listed[-1]
                yield self._packed[-1]

    def at(self, group: Group, places: Sequence[int]) -> Variant:
        """The variant for the sizes of a group alone.

        Args:
            group: one of this form.
            places: its sizes, in the order of the form.

        Raises:
            CompileError: there is no kernel for it.
        """
        sizes = tuple(places)
        return self.found(sizes) or self._made_at(group, sizes)

    def _made_at(self, group: Group, sizes: tuple[int, ...]) -> Variant:
        self.add(group, sizes, sizes)
        found = self.found(sizes)
        assert found is not None
        return found

    def found(self, sizes: tuple[int, ...]) -> Variant | None:
        """The variant for these sizes alone, if it is there."""
        many = (v.at(sizes) for v in self._candidates(sizes))
        return next((v for v in many if v is not None), self._own.get(sizes))

    def write(self, group: Group, places: Sequence[int], sizes: tuple[int, ...]) -> None:
        """Writes a variant for these sizes, unless one holds for them; it is not to be run here.

        Raises:
            CompileError: there is no kernel for it.
        """
        if not any([variant.at(sizes) for variant in self.variants]) and self._symbolic:
            self._written(group, places, sizes)

    def _own_group(
        self, group: Group, places: Sequence[int], sizes: Sequence[int]
    ) -> tuple[Group, Sequence[int]]:
        """A group of this very form, and its sizes, which may all differ; the given one may have a
        form in which some are equal."""
        if form_of(group).key == self._key:
            return group, places
        extents = Extents()
        own = [extents.base(n) for n in sizes]
        return group_at(self._key, own), own

    def _written(
        self, group: Group, places: Sequence[int], sizes: tuple[int, ...]
    ) -> Variant | None:
        """A new variant, if kernels of this family have sizes as arguments."""
        group, places = self._own_group(group, places, sizes)
        extents = Extents()
        extents.planning = True
        try:
            symbolic = resized(group, places, sizes, lambda n: extents.base(n, min(n, LEAST)))
            variant = variant_of(symbolic, written(symbolic, self._target), extents, self._target)
        except (CompileError, TypeError):
            self._symbolic = False
            return None
        self._begin(variant)
        self.variants.insert(0, variant)
        _new.append(self)
        return variant

    def restore(self, group: Group, places: Sequence[int]) -> list[Code]:
        """Writes kernels again whose object code is gone; returns them."""
        lost = [v for v in self.variants if any([t.code.is_lost for t in v.templates])]
        try:
            for variant in lost:
                self.variants.remove(variant)
                self._written(group, places, variant.first)
        finally:
            self._offer()
        return [t.code for variant in lost for t in variant.templates]

    def _begin(self, variant: Variant) -> None:
        """Has kernels compiled while others are still written."""
        for template in variant.templates:
            if not template.code.address:
                compiler.begin(template.code.kernel, self._target)

    def keep(self) -> None:
        """Stores its variants, whose kernels are compiled."""
        if self.text is not None:
            data = [v.as_data(lambda k: compiler.key_of(k, self._target)) for v in self.variants]
            compiler.cache().store({self.key: json.dumps(data).encode()})

    @property
    def key(self) -> str:
        """Its key on disk."""
        return digest("entry", compiler_digest(), repr(self._target), str(self.text))

    def _for_one_size(self, group: Group, places: Sequence[int], sizes: tuple[int, ...]) -> Variant:
        plain = resized(*self._own_group(group, places, sizes), sizes, int)
        return variant_of(plain, lower(plain, self._target), None, self._target, sizes)


_new: Final[list[Entry]] = []  # with variants that are not yet on disk


_anew: Final[list[bool]] = []


@contextlib.contextmanager
def written_anew() -> Iterator[Callable[[], dict[str, list[Variant]]]]:
    """A library of its own, for which all kernels are written; none of them is linked.

    Yields:
        What gives the variants of each form, by its text.
    """
    before = dict(_entries)
    _entries.clear()
    _anew.append(True)
    try:
        with codes_anew():
            yield lambda: {x.text: x.variants for x in _entries.values() if x.text and x.variants}
    finally:
        _anew.pop()
        _new.clear()
        _entries.clear()
        _entries.update(before)


def link(codes: Sequence[Code]) -> None:
    """Compiles kernels, together and in several processes, and links them.

    Raises:
        CompileError: LLVM rejected a kernel.
        NoCompilerError: a kernel is missing, and there is no compiler.
    """
    for target in dict.fromkeys([code.target for code in codes]):
        own = [code for code in dict.fromkeys(codes) if code.target == target]
        addresses = compiler.compile_kernels([code.kernel for code in own], target)
        for code in own:
            code.link(addresses[code.kernel])
    while _new:
        _new.pop().keep()


_codes: Final[dict[tuple[Pack, int], Code]] = {}  # those in packs, which stay as long
COPY: Final = "copy"
"""Under this name a pack has the kernel of all copies."""


def copying(target: Target) -> Code:
    """The kernel of all copies."""
    pack = pack_of(target)
    place = None if pack is None else pack.find(COPY)
    if pack is None or place is None:
        return code_of(copy_kernel(), target)
    return _in_pack(pack, target, COPY, int(place))


def _in_pack(pack: Pack, target: Target, name: str, offset: int) -> Code:
    found = _codes.get((pack, offset))
    if found is None:
        found = _codes[pack, offset] = Code(Kernel(name, "", f"packed {offset}"), target)
        found.link(pack.at(offset))
    return found


def as_lines(variants: Sequence[Variant], offset: Callable[[Kernel], int]) -> str:
    """The text of a form in a pack: the sizes that its variants were written for, then a line each.

    Args:
        offset: where a kernel is.
    """
    parts = [[v.first for v in variants], *[v.as_data(offset) for v in variants]]
    return "\n".join([json.dumps(part, separators=(",", ":")) for part in parts])


def _from_lines(text: str) -> list[tuple[list[int], str]]:
    """The variants of a form in a pack: for which sizes each was written, and its line."""
    sizes, *lines = text.split("\n")
    return list(zip(json.loads(sizes), lines, strict=True))


def _distance(sizes: Sequence[int], others: Sequence[int]) -> float:
    """How far sizes are from others, about in factors of two; a size may be 0."""
    pairs = zip(sizes, others, strict=True)
    return sum([abs(math.log2((a + 1) / (b + 1))) for a, b in pairs])


def _kept(key: str, target: Target) -> list[Variant]:
    """The variants on disk whose kernels are there."""
    data = compiler.cache().load(key)
    if data is None:
        return []

    def code(name: str, key: str) -> Code:
        return code_of(Kernel(name, "", key), target)

    found = [from_data(variant, code) for variant in json.loads(data)]
    return [  # a later variant may hold for an earlier one's sizes before that is compiled
        variant
        for variant in found
        if all([compiler.knows(each.code.kernel, target) for each in variant.templates])
    ]


_entries: Final[dict[tuple[Target, Hashable], Entry]] = {}


def entry_of(group: Group, target: Target) -> tuple[Entry, tuple[int, ...]]:
    """The entry for a group, and the sizes of the group that it takes, in its order.

    Raises:
        UnsizedError: there is none for sizes other than the group's.
    """
    entry, form = entry_for(form_of(group), target)
    return entry, form.sizes


def there(group: Group, target: Target) -> Variant | None:
    """The kernels of a group in the pack for its sizes alone; `None` if it has none for them.

    Raises:
        UnsizedError: as `entry_of`.
    """
    form, _, lines = _listed(form_of(group), target)
    return None if lines is None else entry_for(form, target)[0].found(form.sizes)


def entry_for(form: Form, target: Target) -> tuple[Entry, Form]:
    """The entry for a form, and the form that it is of: perhaps one that serves this one, too."""
    entry = _entries.get((target, form.key))
    if entry is None:
        if len(_entries) >= MOST_FORMS:
            _entries.clear()
        form, text, lines = _listed(form, target)
        entry = _entries.get((target, form.key)) or Entry(form, text, lines, target)
        _entries[target, form.key] = entry
    return entry, form


def _listed(form: Form, target: Target) -> tuple[Form, str | None, str | None]:
    """A form, its text, and what the pack has of it: the form itself, unless only another is there
    that serves it, too.
    """
    text = text_of(form.key)
    if text.endswith(UNKNOWN):
        return form, None, None
    pack = None if _anew else pack_of(target)
    if pack is None:
        return form, text, None
    lines = pack.find(text)
    if lines is None:
        known = pack.find(frame(text))
        other = None if known is None else looser(form, text, known)
        if other is not None:
            form, text = other, text_of(other.key)
            lines = pack.find(text)
    return form, text, lines
