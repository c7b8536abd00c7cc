"""Scalar expressions to LLVM IR, on several lanes at a time.

A `Writer` holds what is bound where it writes: loop variables, reductions' results, and the
`Copy`s that the current vector loop is unrolled to. An expression that does not depend on the
vector variable is computed once, as a scalar, and splat where it meets vectors. Everything written
is remembered until the loop it stands in ends, so nothing is computed twice.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from weft.codegen.builder import (
    LOOKED_THROUGH,
    Builder,
    Reg,
    constant,
    element,
    integer,
    vector,
)
from weft.codegen.loop.arithmetic import compute, lane_numbers, literal
from weft.codegen.loop.convert import (
    choose,
    convert,
    intrinsic,
    loaded,
    mangle,
    number,
    register_type,
    storage_type,
    stored,
)  # fmt: skip
from weft.codegen.loop.expression import Buffer, Expr, indices, needed
from weft.codegen.loop.index import Atom, Index, Symbol
from weft.codegen.microkernel import opaque, store_masked
from weft.ir import dtype as types
from weft.ir.extent import Extent


class Copy:
    """Neighbouring elements that are computed together: `lanes` of them from `shift` on.

    `mask` (one `i1` a lane) says which of them exist; `None` means all.
    """

    def __init__(self, lanes: int, shift: int = 0, mask: Reg | None = None, slot: int = 0) -> None:
        self.slot: Final = slot  # which accumulator it adds to
        self.lanes: Final = lanes
        self.shift: Final = shift
        self.mask: Final = mask
        self.locals: dict[Symbol, Reg] = {}
        self.scopes: list[dict[int | str, Reg]] = [{}]

    def find(self, key: int | str) -> Reg | None:
        """What was written under `key`, if it can be used here."""
        for scope in reversed(self.scopes):
            if key in scope:
                return scope[key]
        return None

    def keep(self, key: int | str, value: Reg) -> Reg:
        """Remember a register until the innermost loop ends."""
        self.scopes[-1][key] = value
        return value


class Writer:
    """Writes expressions into a builder."""

    def __init__(self, f: Builder, pointers: dict[Buffer, Reg]) -> None:
        self.f: Final = f
        self.pointers: Final = pointers
        self.bound: dict[Symbol, Reg] = {}  # scalars, in the order in which loops opened
        self.axis: Symbol | None = None  # the variable of the vector loop
        self.lanewise: set[Symbol] = set()
        self.uniform = Copy(1)
        self.copies: list[Copy] = []

    @contextlib.contextmanager
    def scope(self) -> Iterator[None]:
        """What is written and bound inside is forgotten at the end."""
        holders = [self.uniform, *self.copies]
        bound, lanewise = dict(self.bound), set(self.lanewise)
        for holder in holders:
            holder.scopes.append({})
        yield
        for holder in holders:
            holder.scopes.pop()
        self.bound, self.lanewise = bound, lanewise

    @contextlib.contextmanager
    def vectors(self, axis: Symbol, first: Reg, copies: list[Copy]) -> Iterator[None]:
        """Inside, `axis` is a vector variable that starts at `first`."""
        before = (self.axis, self.copies, dict(self.bound), set(self.lanewise))
        self.axis, self.copies = axis, copies
        self.bound[axis] = first
        self.lanewise.add(axis)
        yield
        self.axis, self.copies, self.bound, self.lanewise = before

    def is_lanewise(self, symbols: Iterable[Symbol]) -> bool:
        """Whether what depends on `symbols` differs from lane to lane."""
        return not self.lanewise.isdisjoint(symbols)

    def hoist(self, roots: Sequence[Expr], lanes: int) -> None:
        """Write, ahead of a loop, whatever in `roots` depends only on what is bound here.

        Scalars that meet vectors inside are splat over `lanes`.
        """
        known = self.bound.keys() | self.lanewise
        for x in needed(roots):
            fixed = x.symbols <= known
            if fixed and x.op != "const":
                for copy in self.copies if self.is_lanewise(x.symbols) else [self.uniform]:
                    self.value(x, copy)
            elif x.op == "load":
                self.pointer(x.data[0], self._known_part(x.data[1], known))
            if not fixed:
                for a in x.args:
                    if a.symbols <= known and not self.is_lanewise(a.symbols) and lanes > 1:
                        self.wide(a, self.copies[0] if self.copies else Copy(lanes))

    def _known_part(self, offset: Index, known: Iterable[Symbol]) -> Index:
        have = set(known)
        return Index([(a, k) for a, k in offset.terms if a.symbols <= have - self.lanewise], 0)

    def value(self, root: Expr, copy: Copy) -> Reg:
        """The register of an expression: a vector of `copy.lanes`, or a scalar if it is uniform."""
        home = self._home(root, copy)
        if root.op == "const":
            return literal(root.data, root.dtype)
        found = home.find(root.serial)
        if found is not None:
            return found
        for x in self._missing(root, copy):
            home = self._home(x, copy)
            home.keep(x.serial, self._write(x, home))
        found = home.find(root.serial)
        assert found is not None
        return found

    def _home(self, x: Expr, copy: Copy) -> Copy:
        return copy if self.is_lanewise(x.symbols) else self.uniform

    def _missing(self, root: Expr, copy: Copy) -> list[Expr]:
        found: dict[int, Expr] = {}
        stack = [root]
        while stack:
            x = stack.pop()
            if x.op == "const" or x.serial in found or self._home(x, copy).find(x.serial):
                continue
            found[x.serial] = x
            stack.extend(x.args)
        return [found[serial] for serial in sorted(found)]

    def wide(self, x: Expr, copy: Copy) -> Reg:
        """The register of an expression with exactly `copy.lanes` lanes."""
        if x.op == "const":
            return literal(x.data, x.dtype, copy.lanes)
        register = self.value(x, copy)
        if copy.lanes == 1 or self.is_lanewise(x.symbols):
            return register
        key = f"splat {x.serial} {copy.lanes}"
        found = self.uniform.find(key)
        return found or self.uniform.keep(key, splat(self.f, register, copy.lanes))

    def _write(self, x: Expr, copy: Copy) -> Reg:
        if x.op == "load":
            return self._load(x.data[0], x.data[1], copy)
        if x.op == "local":
            return copy.locals[x.data] if x.data in copy.locals else self.bound[x.data]
        if x.op == "scalar":
            return self._number(x, copy)
        if x.op == "inside":
            return self._inside(x.data, copy)
        return compute(self.f, x, [self.wide(a, copy) for a in x.args])

    # memory
    def _load(self, buffer: Buffer, offset: Index, copy: Copy) -> Reg:
        unit, rest = self._split(offset)
        type_ = storage_type(buffer.dtype, copy.lanes)
        if copy.lanes == 1:
            return self._loaded(self.f.load(type_, self._address(buffer, offset, copy)), buffer)
        if rest or unit not in (1, -1):
            apart = rest or copy.mask is not None
            return (self._gather if apart else self._strided)(buffer, offset, copy)
        if unit == -1:
            if copy.mask is not None:
                return self._gather(buffer, offset, copy)
            start = self._address(buffer, offset - (copy.lanes - 1), copy)
            order = ", ".join(f"i32 {i}" for i in reversed(range(copy.lanes)))
            x = self.f.load(type_, start)
            text = f"shufflevector {x}, {type_} poison, <{copy.lanes} x i32> <{order}>"
            return self._loaded(self.f.emit(type_, text), buffer)
        return self._loaded(self._vector_load(type_, buffer, offset, copy), buffer)

    def _vector_load(self, type_: str, buffer: Buffer, offset: Index, copy: Copy) -> Reg:
        address = self._address(buffer, offset, copy)
        if copy.mask is None:
            return self.f.load(type_, address)
        name = f"llvm.masked.load.{mangle(type_)}.p0"
        zero = Reg(type_, "zeroinitializer")
        # As `store_masked`: a load of one narrow lane must not become a load of four bytes.
        mask = opaque(self.f, copy.mask) if buffer.dtype.size < 4 else copy.mask
        return self.f.call(type_, name, [address, integer(1, "i32"), mask, zero])

    def _loaded(self, x: Reg, buffer: Buffer) -> Reg:
        return loaded(self.f, x, buffer.dtype)

    def _gather(self, buffer: Buffer, offset: Index, copy: Copy) -> Reg:
        base, apart = self._apart(buffer, offset, copy)
        type_ = storage_type(buffer.dtype, copy.lanes)
        addresses = self.f.emit(
            vector("ptr", copy.lanes),
            f"getelementptr {storage_type(buffer.dtype)}, {base}, {apart}",
        )
        name = f"llvm.masked.gather.{mangle(type_)}.{mangle(addresses.type)}"
        args = [addresses, integer(1, "i32"), self._mask(copy), Reg(type_, "zeroinitializer")]
        return self._loaded(self.f.call(type_, name, args), buffer)

    def _strided(self, buffer: Buffer, offset: Index, copy: Copy) -> Reg:
        """Element by element: where addresses are known apart, faster than a gather."""
        unit, _ = self._split(offset)
        base, _ = self._apart(buffer, offset, copy)
        scalar = storage_type(buffer.dtype)
        found = Reg(storage_type(buffer.dtype, copy.lanes), "poison")
        for lane in range(copy.lanes):
            x = self.f.load(scalar, self.f.offset(base, lane * unit, scalar))
            found = self.f.emit(found.type, f"insertelement {found}, {x}, i64 {lane}")
        return self._loaded(found, buffer)

    def _apart(self, buffer: Buffer, offset: Index, copy: Copy) -> tuple[Reg, Reg]:
        """A scalar address, and each lane's distance from it."""
        unit, rest = self._split(offset)
        lane = Index([(a, k) for a, k in offset.terms if not self.is_lanewise(a.symbols)], 0)
        base = self.f.offset(
            self.pointer(buffer, lane), offset.const + unit * copy.shift,
            storage_type(buffer.dtype),
        )  # fmt: skip
        if unit:
            assert self.axis is not None
            first = self.f.mul(self.bound[self.axis], unit)
            base = self.f.offset(base, first, storage_type(buffer.dtype))
        varying = Index(rest, 0)
        narrow = _is_narrow(varying) and abs(unit) * copy.lanes < 1 << 30
        type_ = vector("i32" if narrow else "i64", copy.lanes)
        numbers = self._steps(type_, unit)
        if not rest:
            return base, numbers
        apart = self._lanes_of(varying, type_, copy)
        return base, self.f.binary("add", apart, numbers) if unit else apart

    def store(
        self, buffer: Buffer, offset: Index, value: Expr, copy: Copy, stream: bool = False
    ) -> None:
        """Store an expression's lanes at neighbouring positions from `offset` on.

        `stream`: past the caches; the address must be a multiple of the vector's size.
        """
        if not self.is_lanewise(offset.symbols):
            copy = self.uniform
        register = stored(self.f, self.wide(value, copy), buffer.dtype)
        unit, rest = self._split(offset)
        if copy.lanes > 1 and (rest or unit != 1):
            self._scatter(register, buffer, offset, copy)
            return
        address = self._address(buffer, offset, copy)
        if copy.mask is None and stream and copy.lanes > 1:
            self.f.declarations.add("!0 = !{i32 1}")
            align = buffer.dtype.size * copy.lanes
            self.f.line(f"store {register}, {address}, align {align}, !nontemporal !0")
            return
        if copy.mask is None:
            self.f.store(register, address)
            return
        store_masked(self.f, register, address, copy.mask)

    def _scatter(self, x: Reg, buffer: Buffer, offset: Index, copy: Copy) -> None:
        base, apart = self._apart(buffer, offset, copy)
        unit, rest = self._split(offset)
        if not rest and copy.mask is None:
            scalar = element(x.type)
            for lane in range(copy.lanes):
                one = self.f.emit(scalar, f"extractelement {x}, i64 {lane}")
                self.f.store(one, self.f.offset(base, lane * unit, scalar))
            return
        addresses = self.f.emit(
            vector("ptr", copy.lanes),
            f"getelementptr {storage_type(buffer.dtype)}, {base}, {apart}",
        )
        name = f"llvm.masked.scatter.{mangle(x.type)}.{mangle(addresses.type)}"
        self.f.call("void", name, [x, addresses, integer(1, "i32"), self._mask(copy)])

    def _mask(self, copy: Copy) -> Reg:
        return copy.mask or Reg(vector("i1", copy.lanes), "splat (i1 true)")

    # addresses and indices
    def _split(self, index: Index) -> tuple[int, list[tuple[Atom, int]]]:
        """The coefficient of the vector variable, and the other terms that vary by lane."""
        unit, rest = 0, list[tuple[Atom, int]]()
        for atom, k in index.terms:
            if atom.kind == "var" and atom.inner is self.axis:
                unit = k
            elif self.is_lanewise(atom.symbols):
                rest.append((atom, k))
        return unit, rest

    def _address(self, buffer: Buffer, offset: Index, copy: Copy) -> Reg:
        """The address of the first lane's element; `copy` has one lane or unit stride."""
        unit, rest = self._split(offset)
        plain = [t for t in offset.terms if t not in rest]
        address = self.pointer(buffer, Index(plain, 0))
        type_ = storage_type(buffer.dtype)
        for atom, k in rest:  # one lane only
            address = self.f.offset(address, self.f.mul(self._atom(atom, copy), k), type_)
        return self.f.offset(address, offset.const + unit * copy.shift, type_)

    def pointer(self, buffer: Buffer, offset: Index) -> Reg:
        """The address at a scalar offset, built loop by loop so that outer parts are reused."""
        pointer, done = self.pointers[buffer], list[str]()
        order = {symbol: n for n, symbol in enumerate(self.bound)}

        def depth(term: tuple[Atom, int]) -> int:
            return max((order[s] for s in term[0].symbols), default=0)

        for atom, k in sorted(offset.terms, key=depth):
            done = sorted([*done, f"{k}*{atom.key}"])
            key = f"{buffer.name}[{' + '.join(done)}]"
            found = self.uniform.find(key)
            if found is None:
                step = self.f.mul(self._atom(atom, self.uniform), k)
                found = self.f.offset(pointer, step, storage_type(buffer.dtype))
                self.uniform.keep(key, found)
            pointer = found
        return pointer

    def scalar_index(self, index: Index, copy: Copy) -> Reg:
        """An index as an `i64`; with a vector variable inside, `copy` has one lane."""
        total = integer(index.const)
        for atom, k in index.terms:
            total = self.f.add(self.f.mul(self._atom(atom, copy), k), total)
        return total

    def _atom(self, atom: Atom, copy: Copy) -> Reg:
        if atom.kind == "var":
            at = self.bound[atom.inner]
            return self.f.add(at, copy.shift) if atom.inner is self.axis else at
        home = copy if self.is_lanewise(atom.symbols) else self.uniform
        found = home.find(atom.key)
        return found or home.keep(atom.key, self._atom_value(atom, "i64", home))

    def _atom_value(self, atom: Atom, type_: str, copy: Copy) -> Reg:
        if atom.kind == "pick":
            return self._pick(atom.inner, atom.value, type_, copy)
        inner = self._lanes_of(atom.inner, type_, copy)
        if atom.kind == "clamp":
            low, high = atom.value
            inner = intrinsic(self.f, "llvm.smax", inner, number(inner, low))
            return intrinsic(self.f, "llvm.smin", inner, number(inner, high))
        by = atom.value
        lift = max(0, -(atom.inner.low // by))  # so that the dividend is not negative
        if lift:
            inner = self.f.binary("add", inner, number(inner, lift * by))
        if atom.kind == "mod":
            return self.f.binary("urem", inner, number(inner, by))
        quotient = self.f.binary("udiv", inner, number(inner, by))
        return self.f.binary("sub", quotient, number(quotient, lift)) if lift else quotient

    def _pick(self, x: Expr, size: int, type_: str, copy: Copy) -> Reg:
        register = self.wide(x, copy)
        signed = x.dtype.kind == "i"
        width = 64 if "i64" in type_ else 32
        bits = x.dtype.size * 8
        if bits < width:
            register = convert(self.f, "sext" if signed else "zext", register, f"i{width}")
        if signed:
            register = intrinsic(self.f, "llvm.smax", register, number(register, 0))
        register = intrinsic(self.f, "llvm.umin", register, number(register, size - 1))
        return convert(self.f, "trunc", register, f"i{width}")

    def _lanes_of(self, index: Index, type_: str, copy: Copy) -> Reg:
        """An index as a register of integer type `type_`, lane by lane."""
        if not type_.startswith("<"):
            return self.scalar_index(index, copy)
        unit, rest = self._split(index)
        plain = [t for t in index.terms if t not in rest]
        first = self.scalar_index(Index(plain, index.const + unit * copy.shift), self.uniform)
        if not first.text.startswith("%"):
            total = constant(int(first.text), type_)
        else:
            total = splat(self.f, convert(self.f, "trunc", first, element(type_)), copy.lanes)
        if unit:
            total = self.f.binary("add", total, self._steps(type_, unit))
        for atom, k in rest:
            part = self._lane_atom(atom, type_, copy)
            part = part if k == 1 else self.f.binary("mul", part, number(part, k))
            total = self.f.binary("add", total, part)
        return total

    def _steps(self, type_: str, unit: int) -> Reg:
        """How far every lane is from the first."""
        if not isinstance(unit, Extent):
            return lane_numbers(type_, unit)
        return self.f.binary("mul", lane_numbers(type_), constant(unit, type_))

    def _lane_atom(self, atom: Atom, type_: str, copy: Copy) -> Reg:
        key = f"{type_} {atom.key}"
        return copy.find(key) or copy.keep(key, self._atom_value(atom, type_, copy))

    def _integers(self, index: Index, copy: Copy) -> Reg:
        if copy.lanes == 1:
            return self.scalar_index(index, copy)
        scalar = "i32" if _is_narrow(index) else "i64"
        return self._lanes_of(index, vector(scalar, copy.lanes), copy)

    def _number(self, x: Expr, copy: Copy) -> Reg:
        register = self._integers(x.data, copy)
        scalar = register_type(x.dtype)
        if x.dtype.is_floating:
            register = convert(self.f, "sitofp", register, scalar)
            if x.dtype.size == 2:
                register = loaded(self.f, stored(self.f, register, x.dtype), x.dtype)
            return register
        if x.dtype is types.bool_:
            return self.f.compare("icmp ne", register, number(register, 0))
        have, want = (int(t.rstrip(">").rsplit("i", 1)[1]) for t in (register.type, scalar))
        return convert(self.f, "sext" if have < want else "trunc", register, scalar)

    def _inside(self, limits: tuple[Index, int, int], copy: Copy) -> Reg:
        index, low, high = limits
        register = self._integers(index, copy)
        if low > index.low and high <= index.high:
            shifted = self.f.binary("sub", register, number(register, low))
            return self.f.compare("icmp ult", shifted, number(register, max(high - low, 0)))
        if low > index.low:
            return self.f.compare("icmp sge", register, number(register, low))
        return self.f.compare("icmp slt", register, number(register, high))


def splat(f: Builder, x: Reg, lanes: int) -> Reg:
    """`x` in all lanes."""
    return f.splat(x, lanes)


def masked(f: Builder, copy: Copy, new: Reg, old: Reg) -> Reg:
    """`new` in the lanes of `copy` that exist, else `old`."""
    return new if copy.mask is None else choose(f, copy.mask, new, old)


def turns(offset: Index, across: Symbol, along: Symbol) -> bool:
    """Whether a load is contiguous along one axis, whatever other atoms say, and not another."""
    steps = {atom.inner: k for atom, k in offset.terms if atom.kind == "var"}
    others = {s for atom, _ in offset.terms if atom.kind != "var" for s in atom.symbols}
    strides = along in others or steps.get(along, 0) not in (0, 1)
    return strides and across not in others and steps.get(across, 0) == 1


def transposed(f: Builder, rows: list[Reg]) -> list[Reg]:
    """The columns of a square of registers: halves exchanged, then quarters, and so on."""
    size = half = len(rows)
    while half > 1:
        half //= 2
        done: list[Reg] = list(rows)
        for n in range(size):
            if n & half:
                continue
            low, high = rows[n], rows[n + half]
            for where, first in ((n, 0), (n + half, half)):
                order = [(i & ~half) + first + (size if i & half else 0) for i in range(size)]
                mask = ", ".join(f"i32 {i}" for i in order)
                text = f"shufflevector {low}, {high}, <{size} x i32> <{mask}>"
                done[where] = f.emit(low.type, text)
        rows = done
        if half * LOOKED_THROUGH == size > LOOKED_THROUGH:
            rows = [f.fence(row) for row in rows]
    return rows


def _is_narrow(index: Index) -> bool:
    """Whether 32 bits hold the index and everything it is computed from."""
    room = 1 << 30
    if not (-room <= index.low and index.high < room):
        return False
    for atom, k in index.terms:
        if max(abs(k), abs(atom.low * k), abs(atom.high * k)) >= room:
            return False
        if atom.kind not in ("var", "pick") and not _is_narrow(atom.inner):
            return False
    return True


def roots_of(values: Iterable[Expr]) -> list[Index]:
    """All index expressions that `values` use."""
    return [index for x in needed(values) for index in indices(x)]
