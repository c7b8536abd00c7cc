"""The kernel of a loop that calls the kernels of its iterations, which LLVM puts in place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from weft.codegen.builder import Builder, Reg, integer, kernel_builder
from weft.codegen.llvm import INLINED
from weft.passes.launch import (
    BYTES_PER_NS,
    ERROR,
    SYMBOL,
    Argument,
    Buffer,
    Kernel,
    Launch,
    Part,
    SerialCall,
    SerialLoop,
)

PAUSE: Final = 4_000_000
"""Nanoseconds, as estimated, after which the kernel returns, so that Ctrl-C can come."""
ALIGN: Final = 64
_HEAD, _TAIL = f"define void @{SYMBOL}(", " nounwind {"
"""Around the parameters of a kernel."""


def serial_launch(name: str, loop: SerialLoop) -> Launch | None:
    """The launch that does some iterations, continuing after those that are done.

    Returns:
        `None` if a kernel has functions or data of its own beside its code.
    """
    calls = (*loop.test, *loop.body)
    if not all(_is_plain(call.kernel) for call in calls):
        return None
    made = _Kernel(loop)
    text = made.text()
    writes = tuple([made.args.index(b) for b in made.written])
    iterations = loop.most if loop.most >= 0 else 1
    args = (*made.args, *made.error)
    return Launch(
        Kernel(f"{name}_of_{len(calls)}_kernels", text), args, writes, check=bool(made.error),
        bytes=BYTES_PER_NS * loop.nanoseconds * iterations,
    )  # fmt: skip


def _is_plain(kernel: Kernel) -> bool:
    lines = kernel.ir.splitlines()
    others = [x for x in lines if x.startswith(("@", "define", "attributes", "!"))]
    return len(others) == 1 and others[0].startswith(_HEAD) and others[0].endswith(_TAIL)


class _Kernel:
    """The loop under construction: memory of its own, and how it calls kernels."""

    def __init__(self, loop: SerialLoop) -> None:
        self.loop = loop
        self.f: Builder = kernel_builder()
        self.functions: dict[str, tuple[str, str]] = {}  # a kernel's text -> its name, text here
        parts = [a for call in (*loop.test, *loop.body) for a in call.args if isinstance(a, Part)]
        parts += [] if loop.holds is None else [loop.holds]
        self.error = (ERROR, 0) if any([p.base is ERROR for p in parts]) else ()
        self.written: list[Buffer] = [*loop.carried, *loop.rows, loop.done, loop.going]
        bases = dict.fromkeys([*self.written, *[p.base for p in parts]])
        self.args: list[Argument] = [b for b in bases if b not in loop.private and b is not ERROR]
        self.given = {b: self.f.argument(i) for i, b in enumerate(self.args)}
        if self.error:
            self.given[ERROR] = self.f.argument(len(self.args))
            self.tag = self.f.argument(len(self.args) + 1, "i64")
        self.own = {b: self._room(n) for b, n in {**loop.private, **loop.carried}.items()}
        self.iteration = self._room(8)
        calls = (*loop.test, *loop.body)
        self.tables = {call: self._room(8 * len(call.args)) for call in calls}

    def _room(self, count: int) -> Reg:
        return self.f.emit("ptr", f"alloca [{max(1, count)} x i8], align {ALIGN}")

    def text(self) -> str:
        """The module."""
        f, loop = self.f, self.loop
        first = f.load("i64", self.given[loop.done], 8)
        f.store(first, self.iteration, 8)
        self._copy({b: (self.given[b], self.own[b]) for b in loop.carried})
        last = f.add(first, max(1, int(PAUSE / loop.nanoseconds)))
        head, left, body, over, out = map(f.label, ("head", "left", "body", "over", "out"))
        f.jump(head)
        f.start(head)
        now = f.load("i64", self.iteration, 8)
        f.branch(f.compare("icmp ult", now, integer(loop.most)), left, over)
        f.start(left)
        for call in loop.test:
            self._call(call, now)
        if loop.holds is not None:
            byte = f.load("i8", self._address(loop.holds, now))
            more = f.label("more")
            f.branch(f.compare("icmp ne", byte, Reg("i8", "0")), more, over)
            f.start(more)
        f.branch(f.compare("icmp ult", now, last), body, out)
        f.start(body)
        for call in loop.body:
            self._call(call, now)
        own = self.own
        self._copy({even: (own[odd], own[even]) for even, odd in loop.swapped})
        f.store(f.add(now, 1), self.iteration, 8)
        if self.error:
            state = f.emit("i64", f"load atomic i64, {self.given[ERROR]} seq_cst, align 8")
            f.branch(f.compare("icmp eq", state, integer(0)), head, over)
        else:
            f.jump(head)
        end = f.label("end")
        for label, going in ((over, 0), (out, 1)):
            f.start(label)
            f.store(Reg("i8", str(going)), self.given[loop.going])
            f.jump(end)
        f.start(end)
        f.store(f.load("i64", self.iteration, 8), self.given[loop.done], 8)
        self._copy({b: (self.own[b], self.given[b]) for b in loop.carried})
        functions = [text for _, text in self.functions.values()]
        return INLINED + "\n".join([*sorted(f.declarations), "", *functions, f.function()])

    def _copy(self, pairs: Mapping[Buffer, tuple[Reg, Reg]]) -> None:
        self.f.declarations.add("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
        for buffer, (source, target) in pairs.items():
            count = self.loop.carried[buffer]
            self.f.line(
                f"call void @llvm.memcpy.p0.p0.i64({target}, {source}, i64 {count}, i1 false)"
            )

    def _address(self, part: Part, now: Reg) -> Reg:
        f = self.f
        base = self.own.get(part.base) or self.given[part.base]
        return f.offset(base, f.add(f.mul(now, part.stride), part.start))

    def _call(self, call: SerialCall, now: Reg) -> None:
        """Calls a kernel for all its chunks, on a table of arguments as the driver has."""
        f, table = self.f, self.tables[call]
        last: Part | int = 0
        for slot, argument in enumerate(call.args):
            place = f.offset(table, slot, "i64")
            if isinstance(argument, Part):
                f.store(self._address(argument, now), place, 8)
            else:  # after the error cell, which call it is
                is_tag = isinstance(last, Part) and last.base is ERROR
                f.store(self.tag if is_tag else integer(argument), place, 8)
            last = argument
        name = self._function(call.kernel)
        thread = self.f.params[3]
        f.line(f"call void @{name}({table}, i64 0, i64 {call.chunks}, {thread})")

    def _function(self, kernel: Kernel) -> str:
        """The name of a kernel's function, which is added once."""
        known = self.functions.get(kernel.ir)
        if known is None:
            name = f"kernel{len(self.functions)}"
            before, _, code = kernel.ir.partition(_HEAD)
            lines = [x for x in (before + code).splitlines() if x.startswith("declare")]
            self.f.declarations.update(lines)
            params, _, body = code.partition(_TAIL)
            body, _, _ = body.partition("\n}")
            text = f"define internal void @{name}({params} alwaysinline{_TAIL}{body}\n}}\n"
            self.functions[kernel.ir] = known = name, text
        return known[0]
