"""The LLVM IR builder interleaves independent instruction sequences."""

from __future__ import annotations

import random

from weft.codegen.builder import Builder, Reg, integer, interleaved


def test_runs_take_turns():
    assert interleaved([["  %a = x", "  %b = y %a"], ["  %c = z"], []]) == [
        "  %a = x", "  %c = z", "  %b = y %a"
    ]  # fmt: skip


def test_a_run_waits_for_what_another_one_makes():
    assert interleaved([["  %a = x", "  %b = y"], ["  store %b", "  %c = z"]]) == [
        "  %a = x", "  %b = y", "  store %b", "  %c = z"
    ]  # fmt: skip


def test_every_register_is_written_before_it_is_read():
    rng = random.Random()
    for _ in range(50):
        runs: list[list[str]] = []
        names = ["%p"]
        for _ in range(rng.randint(1, 4)):
            run: list[str] = []
            for _ in range(rng.randint(0, 8)):
                made = f"%v{len(names)}"
                run.append(f"  {made} = op {rng.choice(names)}, {rng.choice(names)}")
                names.append(made)
            runs.append(run)
        found = interleaved(runs)
        known = {"%p"}
        for line in found:
            made, text = line.strip().split(" = op ")
            assert known.issuperset(text.split(", "))
            known.add(made)
        assert sorted(found) == sorted(line for run in runs for line in run)
        for run in runs:  # each in its own order
            assert [line for line in found if line in run] == run


def test_a_builder_writes_runs_in_turns_within_a_block():
    def lines(straight: bool) -> list[str]:
        b = Builder("f", [("i64", "x")])
        with b.interleaved() as next_run:
            for _ in range(2):
                next_run()
                y = b.add(b.params[0], 1)
                if not straight:
                    b.start(b.label("next"))
                b.binary("mul", y, integer(3))
        return [line.split(" = ")[-1].split()[0] for line in b.function().splitlines()[2:-2]]

    assert lines(straight=True) == ["add", "add", "mul", "mul"]
    assert [x for x in lines(straight=False) if x in ("add", "mul")] == ["add", "mul"] * 2


def test_registers_outside_are_known():
    b = Builder("f", [("i64", "x")])
    outside = b.add(b.params[0], 1)
    with b.interleaved() as next_run:
        next_run()
        inside = b.binary("mul", outside, outside)
        next_run()
        b.binary("mul", inside, Reg("i64", "%x"))
    assert b.function().count("mul") == 2
