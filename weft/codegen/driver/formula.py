"""Numbers that follow from sizes."""

from __future__ import annotations

from weft.codegen.driver.list_layout import (
    ADD,
    BASE,
    DIVIDE,
    EQUAL,
    IS,
    LEAST,
    LESS,
    REMEMBERED,
    SAME,
    SUBTRACT,
    Choice,
    Chosen,
    Formula,
    Instruction,
)
from weft.codegen.procedure import Procedure, Ref, Word, i64, pointer, routine

MIX = 0x9E3779B97F4A7C15 - (1 << 64)  # of Fibonacci hashing (Knuth), as a signed number


def compare(x: Word, condition: str, y: Word | int) -> Word:
    """A comparison of signed numbers, such as `slt`."""
    return Word(x.f, x.f.compare(f"icmp {condition}", x.reg, x.f.reg(y)))


@routine(Formula, pointer, pointer, result=i64)
def evaluate(f: Procedure, formula: Ref, given: Word, found: Word) -> int:
    """Writes the values to `found`; whether all checks hold for these sizes."""
    code, count = formula["code"].to(Instruction), formula["count"]
    sizes, values = given.to(i64), found.to(i64)
    at, top = f.local(0), f.local(0)
    with f.repeat() as rounds:
        rounds.leave(at >= count)
        instruction = code.at(at)
        at.set(at + 1)
        kind, a, b = instruction["kind"], instruction["a"], instruction["b"]
        with f.when(kind >= IS):
            wanted = f.local(b)
            with f.when(kind.equals(SAME)):
                wanted.set(sizes.at(b).load())
            with f.when(sizes.at(a).load().differs(wanted)):
                f.give(0)
            rounds.again()
        with f.when(kind < ADD):
            y = f.local(a)
            with f.when(kind.equals(BASE)):
                y.set(sizes.at(a).load())
            values.at(top).store(y)
            top.set(top + 1)
            rounds.again()
        x, z = values.at(a).load(), values.at(b).load()
        with f.when(kind >= EQUAL):
            less = f.select(kind.equals(LESS), compare(x, "slt", z), compare(x, "sle", z))
            holds = f.select(kind.equals(EQUAL), x.equals(z), less).wide("zext")
            with f.when(holds.differs(instruction["wanted"])):
                f.give(0)
            rounds.again()
        values.at(top).store(_computed(f, kind, x, z))
        top.set(top + 1)
    return 1


def _computed(f: Procedure, kind: Word, x: Word, y: Word) -> Word:
    """The value of an instruction with two operands; leaves the function at a division by zero."""
    z = f.local(f.select(kind.equals(ADD), x + y, f.select(kind.equals(SUBTRACT), x - y, x * y)))
    with f.when(kind >= LEAST):
        is_first = compare(x, "slt", y).equals(kind.equals(LEAST))
        z.set(f.select(is_first, x, y))
    with f.when((kind >= DIVIDE) & (kind < LEAST)):
        with f.when(y.equals(0)):
            f.give(0)
        quotient = f.local(Word(f, f.binary("sdiv", x.reg, y.reg)))
        rest = x - quotient * y
        with f.when(rest.differs(0) & compare(rest ^ y, "slt", 0)):
            quotient.set(quotient - 1)  # rounded down, as Python does
        z.set(f.select(kind.equals(DIVIDE), quotient, x - quotient * y))
    return z


@routine(Choice, pointer, result=pointer)
def choose(f: Procedure, choice: Ref, given: Word) -> Word:
    """What is chosen for some sizes: the first item that holds for them; null if there is none."""
    sizes, count = given.to(i64), choice["size_count"]
    mixed = f.local(0)
    with f.count(count) as i:
        mixed.set((mixed + sizes.at(i).load()) * MIX)
    chosen = choice["known"].to(Chosen).at((mixed >> 32) & (REMEMBERED - 1))
    known, same = chosen["sizes"].to(i64), f.local(f.constant(1, "i1"))
    same.set(~chosen["item"].is_null())
    with f.count(count) as i:
        same.set(same & known.at(i).load().equals(sizes.at(i).load()))
    with f.when(same):
        f.give(chosen)
    with f.count(count) as i:
        known.at(i).store(sizes.at(i).load())
    item = _found(f, choice, given, chosen["values"])
    chosen["item"] = item
    with f.when(item.is_null()):
        f.give(f.null())
    return chosen


@routine(Choice, pointer, pointer, result=pointer)
def _found(f: Procedure, choice: Ref, sizes: Word, values: Word) -> Word:
    """The first item that holds for the sizes; null if there is none.

    It comes first the next time: the sizes of a program are much alike.
    """
    items = choice["items"].to(pointer)
    with f.count(choice["count"]) as i:
        item = items.at(i).load()
        with f.when(evaluate(f, _formula(item), sizes, values).differs(0)):
            at = f.local(i)
            with f.repeat() as rounds:
                rounds.leave(at.equals(0))
                items.at(at).store(items.at(at - 1).load())
                at.set(at - 1)
            items.store(item)
            f.give(item)
    return f.null()


def _formula(item: Word) -> Ref:
    """The formula of a case or a variant, which begin with its address."""
    return item.to(pointer).load().to(Formula)
