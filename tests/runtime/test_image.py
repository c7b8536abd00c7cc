"""Linked object files: code that calls, reads constants, and holds addresses."""

from __future__ import annotations

import platform
import struct

import pytest

from weft.codegen import llvm
from weft.errors import CompileError
from weft.runtime.compilation.image import PAGE, linked

CONSTANT = """
@numbers = private constant [4 x i64] [i64 11, i64 22, i64 33, i64 44]
define i64 @{name}(i64 %i) {{
  %p = getelementptr i64, ptr @numbers, i64 %i
  %x = load i64, ptr %p
  ret i64 %x
}}
"""
CALL = """
declare ptr @memcpy(ptr, ptr, i64)
define ptr @{name}(ptr %to, ptr %from, i64 %n) {{
  %r = call ptr @memcpy(ptr %to, ptr %from, i64 %n)
  ret ptr %r
}}
"""
TABLE = """
define internal i64 @seven() {{ ret i64 7 }}
define internal i64 @eight() {{ ret i64 8 }}
@{name} = constant [2 x ptr] [ptr @eight, ptr @seven]
"""
KINDS = {"x86_64": ("x86-64-v2", ""), "aarch64": ("generic", "+neon")}


def objects(processor: str) -> list[tuple[str, bytes]]:
    cpu, features = KINDS[processor]
    sources = {"constant": CONSTANT, "call": CALL, "table": TABLE}
    return [
        (name, llvm.to_object(text.format(name=name), cpu, features, processor))
        for name, text in sources.items()
    ]


@pytest.mark.parametrize("processor", KINDS)
def test_an_image_has_all_symbols_and_knows_what_depends_on_its_address(processor: str):
    image = linked(objects(processor))
    assert len(image.code) % PAGE == 0
    assert [name for _, name in image.imports] == ["memcpy"]
    assert len(image.symbols) == 3
    assert image.symbols[2] >= len(image.code)  # a table is written when it is loaded
    assert [place + len(image.code) for place, _ in image.bases] == [
        image.symbols[2], image.symbols[2] + 8,
    ]  # fmt: skip


def test_arm_instructions_address_what_they_should():
    image = linked(objects("aarch64"))
    words = struct.unpack(f"<{len(image.code) // 4}I", image.code)
    places = [i for i, word in enumerate(words) if word & 0x9F000000 == 0x90000000]  # adrp
    reached = set()
    for i in places:
        pages = (words[i] >> 29 & 3) | (words[i] >> 5 & 0x7FFFF) << 2
        pages -= (pages & 1 << 20) << 1
        page = (4 * i & ~0xFFF) + (pages << 12)
        low = words[i + 1] >> 10 & 0xFFF
        is_load = words[i + 1] & 0xFFC00000 == 0xF9400000
        reached.add(page + low * (8 if is_load else 1))
    numbers = struct.pack("<4q", 11, 22, 33, 44)
    assert image.code.index(numbers) in reached
    assert len(image.code) + image.imports[0][0] in reached


def test_objects_that_cannot_be_linked_are_refused():
    with pytest.raises(CompileError, match="no object code"):
        linked([("x", b"nothing of the kind")])
    name, code = objects("x86_64")[0]
    with pytest.raises(CompileError, match="without other"):
        linked([("other", code)])
    with pytest.raises(CompileError, match="several machines"):
        linked([(name, code), objects("aarch64")[0]])
    text = "declare double @nowhere(double)\n@p = external global i64\n"
    text += "define i64 @x() { %v = load i64, ptr @p ret i64 %v }"
    with pytest.raises(CompileError, match="'p'"):
        linked([("x", llvm.to_object(text, "x86-64-v2", "", "x86_64"))])


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the stored bytes are of x86-64")
def test_relative_references_reach_their_constants():
    image = linked(objects("x86_64"))
    start = image.symbols[0]
    code = image.code[start : start + 32]
    place = code.index(b"\x48\x8d") if b"\x48\x8d" in code else code.index(b"\x48\x8b")
    (distance,) = struct.unpack_from("<i", code, place + 3)
    assert image.code[start + place + 7 + distance :][:8] == struct.pack("<q", 11)
