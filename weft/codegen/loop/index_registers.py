"""Indices and addresses to LLVM IR: as scalars, or lane by lane.

An index is a sum of atoms times coefficients (`weft.codegen.loop.index`). Atoms that are the same
in all lanes are computed once, as `i64`; the others as vectors, of `i32` if that is enough.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from weft.codegen.builder import Reg, constant, element, integer, inverse, vector
from weft.codegen.loop.arithmetic import lane_numbers
from weft.codegen.loop.convert import convert, intrinsic, number, storage_type
from weft.codegen.loop.expression import Buffer, Expr
from weft.codegen.loop.index import Atom, Index
from weft.codegen.loop.lanes import Copy, splat
from weft.codegen.loop.scope import Scope
from weft.ir.extent import Extent, certain, largest, same


class IndexWriter(Scope, ABC):
    """Writes indices and addresses into a builder."""

    @abstractmethod
    def wide(self, x: Expr, copy: Copy) -> Reg:
        """The register of an expression with exactly `copy.lanes` lanes."""

    def _apart(self, buffer: Buffer, offset: Index, copy: Copy) -> tuple[Reg, Reg]:
        """A scalar address, and each lane's offset from it."""
        unit, rest = self._split(offset)
        lane = Index([(a, k) for a, k in offset.terms if not self.is_lanewise(a.symbols)], 0)
        base = self.f.offset(
            self.pointer(buffer, lane), offset.const + unit * copy.shift,
            storage_type(buffer.dtype),
        )  # fmt: skip
        if not same(unit, 0):
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
        return base, apart if same(unit, 0) else self.f.binary("add", apart, numbers)

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
        lift = 0  # so that the dividend is not negative
        if not certain("<=", 0, atom.inner.low):
            lift = largest(0, -(atom.inner.low // by))
        if not same(lift, 0):
            inner = self.f.binary("add", inner, number(inner, lift * by))
        if atom.kind == "mod":
            return self._rest(inner, by)
        quotient = self._quotient(inner, by)
        if same(lift, 0):
            return quotient
        return self.f.binary("sub", quotient, number(quotient, lift))

    def _quotient(self, x: Reg, by: int) -> Reg:
        """`x // by`; by a size in double precision, as there is no instruction for vectors.

        `(x + 0.5) / by` is at least `0.5 / by` from the next integer. For x below 2**30 the
        rounding errors, three of 2**-53 relative to `x / by`, are far below that.
        """
        if not (isinstance(by, Extent) and element(x.type) == "i32" != x.type):
            return self.f.binary("udiv", x, number(x, by))
        divisor = inverse(by, int(x.type[1:].split()[0]))
        wide = self.f.emit(divisor.type, f"sitofp {x} to {divisor.type}")
        middle = self.f.binary("fadd", wide, constant(0.5, wide.type))
        found = self.f.binary("fmul", middle, divisor)
        return self.f.emit(x.type, f"fptosi {found} to {x.type}")

    def _rest(self, x: Reg, by: int) -> Reg:
        """`x % by`."""
        if not isinstance(by, Extent):
            return self.f.binary("urem", x, number(x, by))
        product = self.f.binary("mul", self._quotient(x, by), number(x, by))
        return self.f.binary("sub", x, product)

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
        if not same(unit, 0):
            total = self.f.binary("add", total, self._steps(type_, unit))
        for atom, k in rest:
            part = self._lane_atom(atom, type_, copy)
            part = part if same(k, 1) else self.f.binary("mul", part, number(part, k))
            total = self.f.binary("add", total, part)
        return total

    def _steps(self, type_: str, unit: int) -> Reg:
        """The offset of every lane from the first."""
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


def _is_narrow(index: Index) -> bool:
    """Whether 32 bits hold the index and all its intermediate results."""
    room = 1 << 30
    if not (-room <= index.low and index.high < room):
        return False
    for atom, k in index.terms:
        if not all([-room < n < room for n in (k, atom.low * k, atom.high * k)]):
            return False
        if atom.kind not in ("var", "pick") and not _is_narrow(atom.inner):
            return False
    return True
