"""Functions with control flow in LLVM IR: locals, fields of structures, `when` and `repeat`.

`Builder` writes kernels, whose values are named once. A `Procedure` adds locals that change, as
phis, which it places where blocks meet; and reads the layouts of structures from `ctypes`, so that
Python and native code have one declaration. Functions call each other by the names they have here:

    @routine(Table, i64)
    def total(f: Procedure, table: Ref, start: Word) -> Word:
        y = f.local(start)
        with f.count(table["rows"]) as i:
            y.set(y + table["first"].to(i64).at(i).load())
        return y
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from weft.codegen.builder import ENTRY, Builder, Reg

i64: Final = ctypes.c_int64
u8: Final = ctypes.c_uint8
u32: Final = ctypes.c_uint32
pointer: Final = ctypes.c_void_p

_TYPES: Final[dict[Any, str]] = {
    u8: "i8", ctypes.c_int32: "i32", u32: "i32", i64: "i64", pointer: "ptr",
    ctypes.c_float: "float", ctypes.c_double: "double",
}  # fmt: skip
CACHE_LINE: Final = 64


def lines(*groups: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Fields of a structure, where those of each group have cache lines of their own."""
    fields: list[tuple[str, Any]] = []
    for number, group in enumerate(groups):
        rest = -sum(ctypes.sizeof(type_) for _, type_ in group) % CACHE_LINE
        fields += [*group, (f"unused{number}", ctypes.c_char * rest)]
    return fields


class Machine(NamedTuple):
    """What a function's text depends on."""

    system: str  # as `sys.platform`
    processor: str  # as `platform.machine`


NO_MACHINE: Final = Machine("", "")


def _arithmetic(opcode: str) -> Callable[[Word, Word | int], Word]:
    def result(x: Word, y: Word | int) -> Word:
        return Word(x.f, x.f.binary(opcode, x.reg, x.f.reg(y, x.reg.type)))

    return result


def _comparison(condition: str) -> Callable[[Word, Word | int], Word]:
    def result(x: Word, y: Word | int) -> Word:
        return Word(x.f, x.f.compare(f"icmp {condition}", x.reg, x.f.reg(y, x.reg.type)))

    return result


class Word:
    """A value, with the operators of unsigned integers."""

    def __init__(self, f: Procedure, reg: Reg) -> None:
        self.f = f
        self._reg = reg

    @property
    def reg(self) -> Reg:
        """The register, or constant."""
        return self._reg

    def to(self, layout: Any) -> Ref:
        """The address that this value is, of something of the given layout."""
        return Ref(self.f, self.reg, layout)

    def call(self, result: str, *args: Word | int) -> Word:
        """Calls the function at this address."""
        values = ", ".join(str(self.f.reg(arg)) for arg in args)
        return self.f.instruction(result, f"call {result} {self.reg.text}({values})")

    def wide(self, extend: str = "sext") -> Word:
        """The same number with 64 bits."""
        return self.f.instruction("i64", f"{extend} {self.reg} to i64")

    def short(self) -> Word:
        """The lower 32 bits."""
        return self.f.instruction("i32", f"trunc {self.reg} to i32")

    __add__ = _arithmetic("add")
    __sub__ = _arithmetic("sub")
    __mul__ = _arithmetic("mul")
    __floordiv__ = _arithmetic("udiv")
    __and__ = _arithmetic("and")
    __or__ = _arithmetic("or")
    __xor__ = _arithmetic("xor")
    __lshift__ = _arithmetic("shl")
    __rshift__ = _arithmetic("lshr")
    __lt__ = _comparison("ult")
    __le__ = _comparison("ule")
    __gt__ = _comparison("ugt")
    __ge__ = _comparison("uge")
    equals = _comparison("eq")
    differs = _comparison("ne")

    def __neg__(self) -> Word:
        return Word(self.f, self.f.reg(0, self.reg.type)) - self

    def __invert__(self) -> Word:
        return self ^ -1

    def has(self, bits: int) -> Word:
        """Whether any of these bits is set."""
        return (self & bits).differs(0)

    def is_null(self) -> Word:
        """Whether an address is null."""
        return self.equals(self.f.null())

    def number(self) -> Word:
        """An address as a number."""
        return self.f.instruction("i64", f"ptrtoint {self.reg} to i64")


class Local(Word):
    """A variable: it has the value that was set last, whichever way led here."""

    @property
    def reg(self) -> Reg:
        """The register, or constant, that holds the value now."""
        return self.f.values[self]

    def set(self, value: Word | int) -> None:
        """Changes the value."""
        self.f.values[self] = self.f.reg(value, self.reg.type)


class Ref(Word):
    """The address of something of a layout: a type of `ctypes`.

    Numbers of less than 64 bits are read as 64, with their sign where they have one. `order` is
    LLVM's, of an atomic access: "monotonic", "acquire", "release" or "seq_cst".
    """

    def __init__(self, f: Procedure, reg: Reg, layout: Any) -> None:
        super().__init__(f, reg)
        self.layout = layout

    def field(self, name: str) -> Ref:
        """The field of that name."""
        offset, layout = _field(self.layout, name)
        return Ref(self.f, self.f.offset(self.reg, offset), layout)

    def at(self, index: Word | int) -> Ref:
        """The element of an array; or this, where it is no array, as the first of such."""
        layout = getattr(self.layout, "_type_", None)
        if not isinstance(layout, type):
            layout = self.layout
        step = _TYPES.get(layout) or f"[{ctypes.sizeof(layout)} x i8]"
        return Ref(self.f, self.f.offset(self.reg, self.f.reg(index), step), layout)

    def __getitem__(self, name: str) -> Word:
        return self.field(name).load()

    def __setitem__(self, name: str, value: Word | int) -> None:
        self.field(name).store(value)

    def load(self, order: str = "") -> Word:
        """The value there."""
        type_ = self._type
        text = f"{type_}, {self.reg}{self._order(order)}"
        x = self.f.instruction(type_, f"load {'atomic ' if order else ''}{text}")
        if type_ in ("i8", "i32"):
            return x.wide("sext" if self.layout is ctypes.c_int32 else "zext")
        return x

    def store(self, value: Word | int, order: str = "") -> None:
        """Changes the value there."""
        y = self.f.reg(value, self._type)
        self.f.line(f"store {'atomic ' if order else ''}{y}, {self.reg}{self._order(order)}")

    def update(self, operation: str, value: Word | int, order: str = "seq_cst") -> Word:
        """Changes the value there in one atomic step (`xchg`, `add`, `sub`); what was there."""
        y = self.f.reg(value, self._type)
        return self.f.instruction(y.type, f"atomicrmw {operation} {self.reg}, {y} {order}")

    def replace(self, old: Word | int, new: Word | int) -> Word:
        """Changes the value from `old` to `new` in one atomic step; whether it was `old`."""
        x, y = (self.f.reg(value, self._type) for value in (old, new))
        pair = f"cmpxchg {self.reg}, {x}, {y} acq_rel monotonic"
        both = f"{{ {y.type}, i1 }}"
        done = self.f.instruction(both, pair).reg
        return self.f.instruction("i1", f"extractvalue {done}, 1")

    @property
    def _type(self) -> str:
        return _TYPES[self.layout]

    def _order(self, order: str) -> str:
        align = ctypes.sizeof(self.layout)
        return f" {order}, align {align}" if order else f", align {align}"


@functools.cache
def _field(layout: Any, name: str) -> tuple[int, Any]:
    return getattr(layout, name).offset, dict(layout._fields_)[name]


class Repeat(NamedTuple):
    """A loop: its body ends with the next round."""

    f: Procedure
    head: str
    out: str

    def leave(self, condition: Word | None = None) -> None:
        """Ends the loop; if the condition holds, where there is one."""
        if condition is None:
            self.f.jump(self.out)
        else:
            self.f.jump_if(condition, self.out)

    def again(self) -> None:
        """Goes on with the next round; what follows is not reached."""
        self.f.jump(self.head)


class Procedure(Builder):
    """Writes a function with control flow."""

    def __init__(
        self, name: str, params: Sequence[tuple[str, str]], result: str = "void",
        machine: Machine = NO_MACHINE,
    ) -> None:  # fmt: skip
        super().__init__(name, params, result)
        self.machine = machine
        self.values: dict[Local, Reg] = {}
        self.calls: dict[str, Routine] = {}
        self._sources: dict[str, list[tuple[str, dict[Local, Reg]]]] = {}
        self._rooms: list[str] = []
        self._reached = True

    def reg(self, value: Word | int, type_: str = "i64") -> Reg:
        """The register of a value; a constant has the type given."""
        return value.reg if isinstance(value, Word) else Reg(type_, str(value))

    def instruction(self, type_: str, text: str) -> Word:
        """An instruction; `void` yields an unusable value."""
        if type_ == "void":
            self.line(text)
            return Word(self, Reg("void", ""))
        return Word(self, self.emit(type_, text))

    def invoke(self, result: str, function: str, *args: Word | int) -> Word:
        """Calls an intrinsic or a function of the system, declaring it."""
        return Word(self, self.call(result, function, [self.reg(arg) for arg in args]))

    def constant(self, value: int, type_: str = "i64") -> Word:
        """A number."""
        return Word(self, Reg(type_, str(value)))

    def null(self) -> Word:
        """No address."""
        return Word(self, Reg("ptr", "null"))

    def full_fence(self) -> None:
        """Orders all accesses to memory before it before those behind it."""
        self.line("fence seq_cst")

    def local(self, value: Word | int) -> Local:
        """A variable and its first value."""
        local = Local(self, Reg("", ""))
        self.values[local] = self.reg(value)
        return local

    def room(self, layout: Any, count: int = 1) -> Ref:
        """Memory that lasts as long as this call of the function."""
        name = self.fresh("room")
        self._rooms.append(f"  {name} = alloca [{count} x {_TYPES[layout]}], align 8")
        return Ref(self, Reg("ptr", name), layout)

    def select(self, condition: Word, then: Word | int, other: Word | int) -> Word:
        """One of two values."""
        x, y = self.reg(then), self.reg(other)
        return self.instruction(x.type, f"select {condition.reg}, {x}, {y}")

    def give(self, value: Word | int | None = None) -> None:
        """Returns from the function."""
        self.line("ret void" if value is None else f"ret {self.reg(value)}")
        self._reached = False

    def jump(self, label: str) -> None:
        """Branch to a block, from where the last one has not ended otherwise."""
        if self._reached:
            super().jump(label)
            self._comes_to(label)
        self._reached = False

    def branch(self, condition: Reg, then: str, other: str) -> None:
        """Branch on an `i1`."""
        super().branch(condition, then, other)
        self._comes_to(then)
        self._comes_to(other)
        self._reached = False

    def jump_if(self, condition: Word, label: str) -> None:
        """Branch to a block if the condition holds."""
        on = self.label("on")
        self.branch(condition.reg, label, on)
        self.start(on)

    def start(self, label: str) -> None:
        """Begins a block, if it is reached: locals have phis of the values they come with."""
        sources = self._sources.pop(label, [])
        self._reached = bool(sources)
        if not sources:
            return
        super().start(label)
        _, first = sources[0]
        shared = [local for local in first if all([local in values for _, values in sources])]
        self.values = {local: self._met(local, sources) for local in shared}

    @contextlib.contextmanager
    def when(self, condition: Word | Reg) -> Iterator[None]:
        """Code that runs only if the condition holds."""
        with super().when(condition.reg if isinstance(condition, Word) else condition):
            yield

    @contextlib.contextmanager
    def repeat(self) -> Iterator[Repeat]:
        """A loop without an end of its own."""
        head, out = self.label("head"), self.label("out")
        self.jump(head)
        super().start(head)
        hole = len(self._lines)
        self.values = {x: Reg(reg.type, self.fresh("c")) for x, reg in self.values.items()}
        carried, self._reached = dict(self.values), True
        yield Repeat(self, head, out)
        self.jump(head)
        sources = self._sources.pop(head)
        self._lines[hole:hole] = [
            f"  {reg.text} = {_phi(local, sources)}" for local, reg in carried.items()
        ]
        self.start(out)

    @contextlib.contextmanager
    def count(self, stop: Word | int) -> Iterator[Word]:
        """`for i in range(stop)`."""
        i = self.local(0)
        with self.repeat() as rounds:
            rounds.leave(i >= stop)
            yield i
            i.set(i + 1)

    def function(self, attributes: str = "nounwind") -> str:
        """The finished function's text."""
        if self._reached:
            self.give()
        params = ", ".join(map(str, self.params))
        body = "\n".join([ENTRY, *self._rooms, *self._lines[1:]])
        return f"define {self.result} @{self.name}({params}) {attributes} {{\n{body}\n}}\n"

    def _comes_to(self, label: str) -> None:
        self._sources.setdefault(label, []).append((self._block, dict(self.values)))

    def _met(self, local: Local, sources: list[tuple[str, dict[Local, Reg]]]) -> Reg:
        first = sources[0][1][local]
        if all([values[local] == first for _, values in sources]):
            return first
        return self.emit(first.type, _phi(local, sources))


def _phi(local: Local, sources: list[tuple[str, dict[Local, Reg]]]) -> str:
    pairs = ", ".join(f"[ {values[local].text}, %{block} ]" for block, values in sources)
    return f"phi {sources[0][1][local].type} {pairs}"


class Routine:
    """A native function: what writes its body, and the layouts of its parameters.

    Call it within the body of another to have that call it.
    """

    def __init__(
        self, body: Callable[..., Word | int | None], layouts: tuple[Any, ...], result: Any
    ) -> None:
        self.name: Final = body.__name__
        self.result: Final = "void" if result is None else _TYPES[result]
        self._body = body
        self._layouts = layouts

    def __call__(self, f: Procedure, *args: Word | int) -> Word:
        """Calls the function."""
        f.calls[self.name] = self
        values = ", ".join([str(f.reg(arg)) for arg in args])
        return f.instruction(self.result, f"call {self.result} @{self.name}({values})")

    def at(self, f: Procedure) -> Word:
        """The function's address."""
        f.calls[self.name] = self
        return Word(f, Reg("ptr", f"@{self.name}"))

    def write(self, machine: Machine) -> Procedure:
        """The function for a machine."""
        names = self._body.__code__.co_varnames[1:]
        types = [_TYPES.get(layout, "ptr") for layout in self._layouts]
        params = list(zip(types, names, strict=False))
        f = Procedure(self.name, params, self.result, machine)
        args = [
            Word(f, reg) if layout in _TYPES else Ref(f, reg, layout)
            for reg, layout in zip(f.params, self._layouts, strict=True)
        ]
        value = self._body(f, *args)
        if value is not None:
            f.give(value)
        return f


def routine(*layouts: Any, result: Any = None) -> Callable[[Callable[..., Any]], Routine]:
    """A decorator: the native function whose body the decorated function writes.

    Args:
        layouts: one for each parameter: `i64`, `pointer`, or, for the address of a structure, the
            structure.
        result: the type of the result; nothing is returned by default.
    """
    return lambda body: Routine(body, layouts, result)


def module(machine: Machine, *routines: Routine) -> str:
    """A module of functions, and of those that they call, none of them seen from outside."""
    waiting, texts = list(routines), dict[str, str]()
    declarations, named = set[str](), dict[str, Routine]()
    while waiting:
        current = waiting.pop()
        assert named.setdefault(current.name, current) is current, f"two functions {current.name}"
        if current.name not in texts:
            f = current.write(machine)
            waiting += f.calls.values()
            declarations |= f.declarations
            texts[current.name] = f.function().replace("define", "define internal", 1)
    return "\n".join([*sorted(declarations), "", *texts.values()])
