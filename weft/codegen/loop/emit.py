"""Scalar expressions to LLVM IR, on several lanes at a time.

An expression that does not depend on the vector variable is computed once, as a scalar, and splat
where it meets vectors. Registers are cached until their loop ends, so nothing is computed twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from weft.codegen.builder import Reg, element, integer, vector
from weft.codegen.loop.arithmetic import compute, literal
from weft.codegen.loop.convert import (
    convert,
    loaded,
    mangle,
    number,
    register_type,
    storage_type,
    stored,
)  # fmt: skip
from weft.codegen.loop.expression import Buffer, Expr, needed
from weft.codegen.loop.index import Index, Symbol
from weft.codegen.loop.index_registers import IndexWriter
from weft.codegen.loop.lanes import Copy, splat
from weft.codegen.microkernel import opaque, store_masked
from weft.ir import dtype as types
from weft.ir.extent import certain, largest, same


class Writer(IndexWriter):
    """Writes expressions, loads and stores into a builder."""

    def hoist(self, roots: Sequence[Expr], lanes: int) -> None:
        """Hoists loop-invariant code: whatever in `roots` depends only on what is bound here.

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
        if certain("<=", low, index.low):
            return self.f.compare("icmp slt", register, number(register, high))
        if certain("<", index.high, high):
            return self.f.compare("icmp sge", register, number(register, low))
        shifted = self.f.binary("sub", register, number(register, low))
        return self.f.compare("icmp ult", shifted, number(register, largest(high - low, 0)))

    # memory
    def _load(self, buffer: Buffer, offset: Index, copy: Copy) -> Reg:
        unit, rest = self._split(offset)
        type_ = storage_type(buffer.dtype, copy.lanes)
        if copy.lanes == 1:
            return self._loaded(self.f.load(type_, self._address(buffer, offset, copy)), buffer)
        if rest or not (same(unit, 1) or same(unit, -1)):
            apart = rest or copy.mask is not None
            return (self._gather if apart else self._strided)(buffer, offset, copy)
        if same(unit, -1):
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
        # As in `store_masked`: a load of one narrow lane must not become a load of four bytes.
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
        """Loads element by element: with addresses known apart, faster than a gather."""
        unit, _ = self._split(offset)
        base, _ = self._apart(buffer, offset, copy)
        scalar = storage_type(buffer.dtype)
        found = Reg(storage_type(buffer.dtype, copy.lanes), "poison")
        for lane in range(copy.lanes):
            x = self.f.load(scalar, self.f.offset(base, lane * unit, scalar))
            found = self.f.emit(found.type, f"insertelement {found}, {x}, i64 {lane}")
        return self._loaded(found, buffer)

    def store(
        self, buffer: Buffer, offset: Index, value: Expr, copy: Copy, stream: bool = False
    ) -> None:
        """Stores an expression's lanes at contiguous positions from `offset` on.

        `stream`: non-temporally; the address must be a multiple of the vector's size.
        """
        if not self.is_lanewise(offset.symbols):
            copy = self.uniform
        register = stored(self.f, self.wide(value, copy), buffer.dtype)
        unit, rest = self._split(offset)
        if copy.lanes > 1 and (rest or not same(unit, 1)):
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
