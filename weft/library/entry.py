"""Entries of the library: the kernels of a form, for many sizes.

A kernel is written once for extents; what the generator found out while it wrote (guards) tells for
which other sizes it holds. Sizes that it does not hold for get another variant. Variants are kept
on disk, so that the next process writes none.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Final

from weft.codegen.lower import lower, written
from weft.codegen.target import Target
from weft.errors import CompileError
from weft.ir.extent import Extents
from weft.library import background
from weft.library.form import Form, form_of, resized
from weft.library.variant import Bound, Code, Variant, code_of, codes_anew, from_data, variant_of
from weft.passes.group import Group
from weft.passes.launch import Kernel
from weft.runtime.compilation import compiler
from weft.runtime.compilation.cache import digest
from weft.runtime.compilation.fingerprint import UNKNOWN, compiler_digest, text_of
from weft.runtime.compilation.pack import pack_of
from weft.runtime.execution import driver

MOST_FORMS: Final = 1 << 12  # forgotten together
MOST_VARIANTS: Final = 32  # beyond these, a size gets kernels of its own
MOST_OWN: Final = 64
LEAST: Final = 2  # sizes of one are part of the form


class Entry:
    """The variants of a form.

    Attributes:
        text: the form; `None` if it has no text, and so is not kept.
        variants: those that are not in a pack.
    """

    def __init__(self, form: Form, target: Target) -> None:
        self._target = target
        text = text_of(form.key)
        self.text = None if text.endswith(UNKNOWN) else text
        self._anew = anew = bool(_anew)
        self._packed = [] if anew else _packed(self.text, target)
        self.variants: list[Variant] = []
        self._asked = anew or self.text is None  # the cache on disk: a pack may make it needless
        self._own: dict[tuple[int, ...], Variant] = {}  # for one size each
        self._symbolic = True
        if not self._packed:
            self._ask()

    def _ask(self) -> None:
        """Reads what earlier processes have written, once."""
        if not self._asked:
            self._asked = True
            self.variants = _kept(self.key, self._target)

    def at(self, group: Group, places: Sequence[int], sizes: tuple[int, ...]) -> Bound:
        """The launches of a group of this form at concrete sizes.

        Args:
            places: the group's own sizes, in the order of the form; they may be extents.

        Raises:
            CompileError: there is no kernel for it.
        """
        found = _first(self._packed, sizes) or _first(self.variants, sizes)
        if found is None and not self._asked:
            self._ask()
            found = _first(self.variants, sizes)
        own = self._own.get(sizes)
        if found is None and own is not None:
            found = own.at(sizes)
        return found or self._new(group, places, sizes)

    def _new(self, group: Group, places: Sequence[int], sizes: tuple[int, ...]) -> Bound:
        """The launches of new kernels."""
        if not self._anew:
            driver.prestart()  # compilers start while kernels are written
            background.begin(self._target)
        if self._symbolic and len(self.variants) < MOST_VARIANTS:
            found = self._written(group, places, sizes)
            if found is not None:
                return found
        if len(self._own) >= MOST_OWN:
            self._own.clear()
        own = self._own[sizes] = self._for_one_size(group, places, sizes)
        self._begin(own)
        found = own.at(sizes)
        assert found is not None
        return found

    def _written(self, group: Group, places: Sequence[int], sizes: tuple[int, ...]) -> Bound | None:
        """The launches of a new variant."""
        extents = Extents()
        extents.planning = True
        try:
            symbolic = resized(group, places, sizes, lambda n: extents.base(n, min(n, LEAST)))
            variant = variant_of(symbolic, written(symbolic, self._target), extents, self._target)
        except (CompileError, TypeError):  # no kernel of this family has sizes as arguments
            self._symbolic = False
            return None
        self._begin(variant)
        self.variants.insert(0, variant)
        _new.append(self)
        return variant.at(sizes)

    def restore(self, group: Group, places: Sequence[int]) -> list[Code]:
        """Writes kernels again whose object code is gone; returns them."""
        lost = [v for v in self.variants if any([t.code.is_lost for t in v.templates])]
        for variant in lost:
            self.variants.remove(variant)
            self._written(group, places, variant.first)
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
        plain = resized(group, places, sizes, int)
        return variant_of(plain, lower(plain, self._target), None, self._target)


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


_codes: Final[dict[tuple[Target, int], Code]] = {}  # those in packs


def _first(variants: Sequence[Variant], sizes: tuple[int, ...]) -> Bound | None:
    """The launches for these sizes of the first variant that has them."""
    for variant in variants:
        found = variant.at(sizes)
        if found is not None:
            return found
    return None


def _packed(text: str | None, target: Target) -> list[Variant]:
    """The variants in the pack, if there is one."""
    pack = pack_of(target)
    data = None if pack is None or text is None else pack.find(text)
    if pack is None or data is None:
        return []

    def code(name: str, offset: int) -> Code:
        found = _codes.get((target, offset))
        if found is None:
            found = _codes[target, offset] = Code(Kernel(name, "", f"packed {offset}"), target)
            found.link(pack.at(offset))
        return found

    return [from_data(variant, code) for variant in data]


def _kept(key: str, target: Target) -> list[Variant]:
    """The variants on disk whose kernels are there."""
    data = compiler.cache().load(key)
    if data is None:
        return []

    def code(name: str, key: str) -> Code:
        return code_of(Kernel(name, "", key), target)

    found = [from_data(variant, code) for variant in json.loads(data)]
    kernels = [template.code.kernel for variant in found for template in variant.templates]
    return found if all([compiler.knows(kernel, target) for kernel in kernels]) else []


_entries: Final[dict[tuple[Target, Hashable], Entry]] = {}


def entry_of(group: Group, target: Target) -> tuple[Entry, tuple[int, ...]]:
    """The entry for a group, and the sizes of the group that it takes, in its order.

    Raises:
        UnsizedError: there is none for sizes other than the group's.
    """
    form = form_of(group)
    entry = _entries.get((target, form.key))
    if entry is None:
        if len(_entries) >= MOST_FORMS:
            _entries.clear()
        entry = _entries[target, form.key] = Entry(form, target)
    return entry, form.sizes
