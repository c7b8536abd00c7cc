"""Kernels for many sizes: integers that differ from run to run are kernel arguments.

Code generators write an extent like a number (`weft.codegen.builder.integer`), as a register that
nothing defines. `with_extents` adds the loads at the beginning of the kernel.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final, cast

from weft.codegen.builder import ENTRY, EXTENT, INVERSE
from weft.ir.extent import Extent, Extents
from weft.passes.group import Group
from weft.passes.launch import Kernel, Launch

_WRITTEN: Final = re.compile(rf"%{EXTENT}(\d+)\.(\w+)")


def with_extents(launch: Launch, group: Group) -> Launch:
    """The launch with an argument for every extent that its kernel uses."""
    used = list(dict.fromkeys(_WRITTEN.findall(launch.kernel.ir)))
    if not used:
        return launch
    extents = extents_of(group)
    assert extents is not None
    place = {index: n for n, index in enumerate(dict.fromkeys([index for index, _ in used]))}
    lines = [ENTRY]
    for n in place.values():
        slot = len(launch.args) + n
        lines.append(f"  %e{n} = getelementptr inbounds i64, ptr %args, i64 {slot}")
        lines.append(f"  %e{n}.i64 = load i64, ptr %e{n}, align 8")
    for index, kind in used:
        lines += _converted(f"%e{place[index]}", kind)
    ir = _WRITTEN.sub(lambda found: f"%e{place[found[1]]}.{found[2]}", launch.kernel.ir)
    kernel = Kernel(launch.kernel.name, ir.replace(ENTRY, "\n".join(lines), 1))
    return replace(launch, kernel=kernel, args=(*launch.args, *[extents[int(i)] for i in place]))


def _converted(name: str, kind: str) -> list[str]:
    """Defines a register of another type than `i64`, such as `i32` or `16xi32`."""
    lanes, _, scalar = kind.rpartition("x")
    if not lanes:
        opcode = "trunc" if kind.startswith("i") else "sitofp"
        return [] if kind == "i64" else [f"  {name}.{kind} = {opcode} i64 {name}.i64 to {kind}"]
    one, type_ = f"{name}.{kind}.{scalar}", "double" if scalar == INVERSE else scalar
    opcode = {"i64": "add i64 0,", "float": "sitofp i64", "double": "sitofp i64"}.get(type_)
    found = f"{opcode or 'trunc i64'} {name}.i64" + ("" if type_ == "i64" else f" to {type_}")
    lines = [f"  {one} = {found}"]
    if scalar == INVERSE:
        lines = [f"  {one}.n = {found}", f"  {one} = fdiv double 1.0, {one}.n"]
    return [
        *lines,
        f"  {name}.{kind}.v = insertelement <{lanes} x {type_}> poison, {type_} {one}, i64 0",
        f"  {name}.{kind} = shufflevector <{lanes} x {type_}> {name}.{kind}.v, "
        f"<{lanes} x {type_}> poison, <{lanes} x i32> zeroinitializer",
    ]


def extents_of(group: Group) -> Extents | None:
    """The extents among the numbers of a group.

    They are sizes, or only attributes: the start of a write into an array of fixed size.
    """
    values = (*group.inputs, *[v for node in group.nodes for v in node.outputs])
    numbers = (*[v.shape for v in values], *[x for n in group.nodes for x in n.attrs.values()])
    return next((n.extents for n in _extents(numbers)), None)


def _extents(x: Any) -> Iterator[Extent]:
    """The extents among numbers, which may be nested."""
    if isinstance(x, Extent):
        yield x
    elif isinstance(x, tuple):
        for item in cast("tuple[Any, ...]", x):
            yield from _extents(item)
