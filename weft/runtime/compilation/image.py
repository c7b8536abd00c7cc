"""One image of many object files, which runs wherever it is mapped: a linker for kernels.

Kernels are position independent and refer to nothing but their own constants and a few functions of
the C library. So their sections are put one after another, references between them are resolved
once, and what is left depends on the image's address alone: a table of addresses behind the code.
ELF for x86-64 and AArch64, as in the System V psABI and in Arm's "ELF for the Arm 64-bit
Architecture".
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from weft.errors import CompileError

PAGE: Final = 1 << 16
"""Bytes between code and table: the largest page of the processors."""
_X86, _ARM = 62, 183
_ALLOC, _WRITE = 2, 1
_PROGBITS, _SYMTAB, _RELA, _NOBITS = 1, 2, 4, 8
_POINTER: Final = {_X86: 1, _ARM: 257}
_CALLS: Final = {4, 282, 283}
_STUB: Final = 16  # bytes


class Image(NamedTuple):
    """Linked code.

    Attributes:
        code: read and executed; a multiple of `PAGE` long.
        table: bytes behind it, read and written.
        bases: places in the table that hold addresses of the image, and what is there.
        imports: places in the table that hold functions of the C library, and their names.
        symbols: the offset of each object.
    """

    code: bytes
    table: int
    bases: tuple[tuple[int, int], ...]
    imports: tuple[tuple[int, str], ...]
    symbols: tuple[int, ...]


class _Section(NamedTuple):
    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry: int


class _Symbol(NamedTuple):
    name: str
    section: int
    value: int


class _Object:
    """An object file, parsed."""

    def __init__(self, data: bytes) -> None:
        if data[:6] != b"\x7fELF\x02\x01":
            raise CompileError("no object code of a 64-bit little-endian machine")
        self.data = data
        (self.machine,) = struct.unpack_from("<H", data, 18)
        (start,) = struct.unpack_from("<Q", data, 40)
        size, count = struct.unpack_from("<HH", data, 58)
        layout = struct.Struct("<IIQQQQIIQQ")
        self.sections = [
            _Section(*layout.unpack_from(data, start + i * size)) for i in range(count)
        ]
        self.symbols: list[_Symbol] = []
        for section in self.sections:
            if section.kind == _SYMTAB:
                names = self.sections[section.link].offset
                for at in range(section.offset, section.offset + section.size, 24):
                    name, _, _, place, value, _ = struct.unpack_from("<IBBHQQ", data, at)
                    self.symbols.append(_Symbol(self._text(names + name), place, value))

    def _text(self, at: int) -> str:
        return self.data[at : self.data.index(b"\0", at)].decode()

    def relocations(self) -> list[tuple[int, int, int, _Symbol, int]]:
        """Section, offset, kind, symbol and addend of each."""
        found: list[tuple[int, int, int, _Symbol, int]] = []
        for section in self.sections:
            if section.kind != _RELA or not self.sections[section.info].flags & _ALLOC:
                continue
            for at in range(section.offset, section.offset + section.size, 24):
                offset, info, addend = struct.unpack_from("<QQq", self.data, at)
                symbol = self.symbols[info >> 32]
                found.append((section.info, offset, info & 0xFFFFFFFF, symbol, addend))
        return found


def linked(objects: Sequence[tuple[str, bytes]], page: int = PAGE) -> Image:
    """Links object files, each given with the name of the function, or table, that it is for.

    Args:
        page: bytes that memory is protected by.

    Raises:
        CompileError: an object is damaged, or refers to something in a way that is not known here.
    """
    parsed = [(name, _Object(data)) for name, data in objects]
    linker = _Linker(parsed[0][1].machine if parsed else _X86)
    for name, one in parsed:
        linker.place(name, one)
    for i, (_, one) in enumerate(parsed):
        linker.resolve(i, one)
    return linker.image(page)


class _Linker:
    """Collects sections; code first, then what is written when it is loaded."""

    def __init__(self, machine: int) -> None:
        self._machine = machine
        self._code = bytearray()
        self._table = bytearray()
        self._places: list[dict[int, tuple[bool, int]]] = []  # of each object's sections
        self._symbols: list[tuple[bool, int]] = []
        self._stubs: dict[str, int] = {}
        self._slots: list[tuple[str, int]] = []  # by name: where in the table
        self._references: list[tuple[bool, int, int, bool, int, int]] = []
        self._pointers: list[tuple[int, bool, int]] = []

    def place(self, name: str, one: _Object) -> None:
        """Adds the sections of an object."""
        if one.machine != self._machine:
            raise CompileError("object code of several machines")
        places: dict[int, tuple[bool, int]] = {}
        for i, section in enumerate(one.sections):
            if not section.flags & _ALLOC or section.kind not in (_PROGBITS, _NOBITS):
                continue
            if _is_unwinding(section, one):
                continue
            written = bool(section.flags & _WRITE)
            area = self._table if written else self._code
            area += bytes(-len(area) % max(section.align, 16))
            places[i] = written, len(area)
            content = one.data[section.offset : section.offset + section.size]
            area += bytes(section.size) if section.kind == _NOBITS else content
        self._places.append(places)
        own = [s for s in one.symbols if s.name == name and s.section in places]
        if not own:
            raise CompileError(f"object code without {name}")
        written, start = places[own[0].section]
        self._symbols.append((written, start + own[0].value))

    def resolve(self, number: int, one: _Object) -> None:
        """Notes the references of an object."""
        places = self._places[number]
        for section, offset, kind, symbol, addend in one.relocations():
            if section not in places:
                continue
            written, start = places[section]
            place = start + offset
            if symbol.section in places:
                to, base = places[symbol.section]
                target = base + symbol.value
            elif symbol.section == 0 and kind in _CALLS:
                to, target = False, self._stub(symbol.name)
            else:
                raise CompileError(f"object code refers to {symbol.name!r} by kind {kind}")
            if kind == _POINTER[self._machine]:
                if not written:
                    raise CompileError("object code that is not position independent")
                self._pointers.append((place, to, target + addend))
            else:
                self._references.append((written, place, kind, to, target, addend))

    def _stub(self, name: str) -> int:
        """Where the jump to a function of the C library is."""
        found = self._stubs.get(name)
        if found is None:
            self._code += bytes(-len(self._code) % _STUB)
            found = self._stubs[name] = len(self._code)
            self._code += bytes(_STUB)
            self._table += bytes(-len(self._table) % 8)
            self._slots.append((name, len(self._table)))
            self._table += bytes(8)
        return found

    def image(self, page: int) -> Image:
        """The image, whose code fills pages of this size."""
        code = self._code
        code += bytes(-len(code) % page)
        size = len(code)

        def at(written: bool, place: int) -> int:
            return size + place if written else place

        for name, slot in self._slots:
            self._jump(self._stubs[name], size + slot)
        for written, place, kind, to, target, addend in self._references:
            if written:
                raise CompileError("object code with relative data")
            _RESOLVE[self._machine](code, place, kind, at(to, target), addend)
        return Image(
            bytes(code), len(self._table),
            tuple([(place, at(to, target)) for place, to, target in self._pointers]),
            tuple([(slot, name) for name, slot in self._slots]),
            tuple([at(*symbol) for symbol in self._symbols]),
        )  # fmt: skip

    def _jump(self, place: int, slot: int) -> None:
        if self._machine == _X86:
            struct.pack_into("<2sixx", self._code, place, b"\xff\x25", slot - place - 6)
            return
        struct.pack_into("<4I", self._code, place, 0x90000010, 0xF9400211, 0xD61F0220, 0)
        _arm(self._code, place, 275, slot, 0)  # adrp x16, page of the slot
        _arm(self._code, place + 4, 286, slot, 0)  # ldr x17, [x16, its offset]; br x17


def _is_unwinding(section: _Section, one: _Object) -> bool:
    """Whether a section describes stack frames, which nobody unwinds."""
    names = struct.unpack_from("<H", one.data, 62)[0]
    at = one.sections[names].offset + section.name
    return one.data.startswith(b".eh_frame\0", at)


def _x86(code: bytearray, place: int, kind: int, target: int, addend: int) -> None:
    if kind not in (2, 4):  # PC32, PLT32
        raise CompileError(f"object code with relocations of kind {kind}")
    struct.pack_into("<i", code, place, target + addend - place)


_SCALES: Final = {277: 0, 278: 0, 284: 1, 285: 2, 286: 3, 299: 4}
"""ADD and loads of 1 to 16 bytes with the low twelve bits of an address: what they shift."""


def _arm(code: bytearray, place: int, kind: int, target: int, addend: int) -> None:
    (word,) = struct.unpack_from("<I", code, place)
    to = target + addend
    if kind in (282, 283):  # JUMP26, CALL26
        word |= ((to - place) >> 2) & 0x3FFFFFF
    elif kind == 275:  # ADR_PREL_PG_HI21
        pages = (to >> 12) - (place >> 12)
        word |= (pages & 3) << 29 | ((pages >> 2) & 0x7FFFF) << 5
    elif kind in _SCALES:
        word |= ((to & 0xFFF) >> _SCALES[kind]) << 10
    elif kind == 261:  # PREL32
        word = (to - place) & 0xFFFFFFFF
    else:
        raise CompileError(f"object code with relocations of kind {kind}")
    struct.pack_into("<I", code, place, word)


_RESOLVE: Final = {_X86: _x86, _ARM: _arm}
