"""Makes packs: writes the kernels of all listed forms, compiles them, links them to one image."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from weft.codegen.copy import copy_kernel
from weft.codegen.driver import source
from weft.codegen.target import Target
from weft.errors import CompileError
from weft.ir.extent import Extents
from weft.library.entry import COPY, as_lines, entry_of, written_anew
from weft.library.form_text import group_of
from weft.library.looser_form import frames
from weft.library.variant import Variant
from weft.passes.group import Group
from weft.passes.launch import Kernel
from weft.runtime.compilation import compiler
from weft.runtime.compilation.image import linked
from weft.runtime.compilation.pack import FORMS, packed

DRIVER: Final = "driver"
TOGETHER: Final = 128
"""Forms whose kernels are compiled together; one that is interrupted goes on behind them."""


class Listed(NamedTuple):
    """A form, as text, and sizes that kernels are written for."""

    text: str
    sizes: tuple[tuple[int, ...], ...]


def listed() -> Iterator[Listed]:
    """The forms that kernels are made for: `tools.library_forms` writes the list."""
    for line in FORMS.read_text(encoding="ascii").splitlines():
        sizes, _, text = line.partition(" ")
        yield Listed(text, tuple(map(tuple, json.loads(sizes))))


def made(target: Target, forms: Iterable[Listed]) -> bytes:
    """The pack for a target, to be sealed.

    Raises:
        NoCompilerError: there is no compiler.
    """
    objects: dict[str, tuple[str, bytes]] = {}
    with written_anew() as variants:
        for part in _parts(forms):
            for text, sizes in part:
                for each in sizes:
                    _write(text, each, target)
            _compile(_kernels(variants().values()), target, objects)
        return _packed(variants(), target, objects)


def _parts(forms: Iterable[Listed]) -> Iterator[list[Listed]]:
    left = iter(forms)
    while part := list(itertools.islice(left, TOGETHER)):
        yield part


def _compile(
    kernels: Iterable[Kernel], target: Target, objects: dict[str, tuple[str, bytes]]
) -> None:
    """Adds the object code of kernels; it is kept on disk, too."""
    keys = {compiler.key_of(kernel, target): kernel for kernel in kernels}
    missing = [kernel for key, kernel in keys.items() if key not in objects]
    objects.update(compiler.object_code(missing, target))


def same_group(text: str, sizes: Sequence[int]) -> Group:
    """A group of a form. Its sizes are extents, as those that are equal here need not be so."""
    extents = Extents()
    return group_of(text, [extents.base(n) for n in sizes])


def _write(text: str, sizes: Sequence[int], target: Target) -> None:
    group = same_group(text, sizes)
    entry, places = entry_of(group, target)
    with contextlib.suppress(CompileError):
        entry.write(group, places, tuple(sizes))


def _packed(
    entries: dict[str, list[Variant]], target: Target, objects: dict[str, tuple[str, bytes]]
) -> bytes:
    driver, copies = Kernel(DRIVER, source("linux", target.processor)), copy_kernel()
    _compile([driver, copies], target, objects)
    keys = sorted(objects)
    image = linked([objects[key] for key in keys])
    offsets = dict(zip(keys, image.symbols, strict=True))

    def offset(kernel: Kernel) -> int:
        return offsets[compiler.key_of(kernel, target)]

    texts = {form: as_lines(found, offset) for form, found in entries.items()}
    texts |= frames(entries)
    texts[COPY] = str(offset(copies))
    return packed(target, image, offset(driver), texts)


def _kernels(entries: Iterable[Sequence[Variant]]) -> list[Kernel]:
    return [t.code.kernel for found in entries for v in found for t in v.templates]
