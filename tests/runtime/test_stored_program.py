"""Programs on disk: their keys, loading in a later process, and damage."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from interruption import interrupted_at

from weft import config, ops
from weft.codegen import generator
from weft.codegen.generator import Generator
from weft.codegen.target import current
from weft.errors import CompileError, OutOfRangeError
from weft.ir.dtype import float32, int64
from weft.ir.graph import Graph
from weft.ir.node import TensorType
from weft.ops.call import trace
from weft.ops.linalg.factorization import cholesky
from weft.ops.linalg.matrix import T
from weft.passes import pipeline
from weft.passes.pipeline import optimize, plan
from weft.passes.specialize import specialize
from weft.passes.step import Request, Step
from weft.runtime.compilation import compiler as compiling
from weft.runtime.compilation.compiler import Compiler
from weft.runtime.compilation.fingerprint import fingerprint
from weft.runtime.execution import driver
from weft.runtime.finish import begin, finish
from weft.runtime.memory.state import State
from weft.runtime.recipe import dump, load, recipe_of

TYPES = [TensorType(float32, (4, 3)), TensorType(int64, (2,))]
X, INDEX = np.arange(12, dtype=np.float32).reshape(4, 3), np.array([3, 1])


def step_of(scale: float = 0.5, name: str = "x", weights: Any = (1, 2, 3), types=TYPES) -> Step:
    """A step with feeds, a variable that changes, constants, and an index that is checked."""
    with Graph().as_default() as graph:
        x: Any = ops.placeholder(dtype="float32", shape=types[0].shape, name=name)
        i = ops.placeholder(dtype="int64", shape=(2,))
        w = ops.variable(key="w", dtype="float32", shape=(3,))
        rows: Any = ops.gather(x, i) * np.asarray(weights, np.float32)
        total = ops.sum(ops.read(w) * rows, axes=0)
        change = ops.assign(w, total * scale)
    request = Request(graph, (rows, total), (change.node,), (x, i))
    return specialize(request, types, {}, {})


def run(executable: Any, index: Any = INDEX) -> tuple[list[Any], Any]:
    state = State()
    state["w"] = np.ones(3, np.float32)
    found = executable.run([X, np.asarray(index)], state)
    return found, state["w"]


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Gives a function that forgets everything that is not on disk."""
    used: list[Compiler] = []

    def forget() -> None:
        used.append(Compiler())
        monkeypatch.setattr(compiling, "_compiler", used[-1])

    driver.entries()  # of the compiler that stays: code goes with the compiler that linked it
    with config.override(cache=str(tmp_path)):
        forget()
        yield forget
    for compiler in used:
        compiler.close()


def refuse(*_: Any, **__: Any) -> Any:
    raise AssertionError("planned again")


def test_a_program_is_loaded_whole_and_nothing_is_planned(fresh, monkeypatch):
    wanted, variable = run(finish(step_of(), 2))
    fresh()
    monkeypatch.setattr(pipeline, "optimize", refuse)
    monkeypatch.setattr(pipeline, "plan", refuse)
    found, again = run(finish(step_of(name="other"), 2))
    assert all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))
    np.testing.assert_array_equal(again, variable)
    assert len(finish(step_of(), 2, fetches=1)._fetches) == 1


def test_errors_and_profiles_of_a_loaded_program_tell_as_much(fresh):
    made = finish(step_of(), 1)
    fresh()
    loaded = finish(step_of(), 1)
    for program in (made, loaded):
        with pytest.raises(OutOfRangeError, match=r"gather: .*9.*test_stored_program\.py"):
            run(program, [0, 9])
    assert loaded.summary() == made.summary()
    state = State()
    state["w"] = np.ones(3, np.float32)
    assert "gather" in loaded.profile([X, INDEX], state)


def test_ctrl_c_while_evicted_kernels_are_planned_again_is_no_loss(fresh, tmp_path):
    wanted, _ = run(finish(step_of(), 1))
    kernels = [x for x in tmp_path.glob("*.o") if b"ELF" in x.read_bytes()]
    fresh()
    for kernel in kernels:
        kernel.unlink()
    begun = begin(step_of(), 1)
    assert interrupted_at(5000, begun.executable)
    assert not list(tmp_path.glob("*.tmp"))
    found, _ = run(begun.executable())
    assert all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))


def test_whatever_decides_a_program_is_in_its_name():
    target = current()
    names = [
        fingerprint(step_of(), 2, target),
        fingerprint(step_of(), 1, target),
        fingerprint(step_of(), 2, replace(target, winograd="off")),
        fingerprint(step_of(), 2, replace(target, l2=target.l2 * 2)),
        fingerprint(step_of(0.25), 2, target),
        fingerprint(step_of(weights=(1, 2, 4)), 2, target),
        fingerprint(step_of(types=[TensorType(float32, (5, 3)), TYPES[1]]), 2, target),
        fingerprint(replace(step_of(), feeds=step_of().feeds[::-1]), 2, target),
        fingerprint(replace(step_of(), updates=("v",)), 2, target),
    ]
    assert None not in names and len({*names}) == len(names)
    assert fingerprint(step_of(name="y"), 2, target) == names[0]


def test_what_has_no_text_has_no_name():
    with Graph().as_default() as graph:
        x = ops.placeholder(dtype="float32", shape=(3,))
        node = graph.add("abs", (x,), {"f": (1, object())}, (x.type,))
    graph.outputs = (node.outputs[0],)
    assert fingerprint(Step(graph, (x.node.name,), ()), 1, current()) is None


@pytest.mark.parametrize("damage", ["truncated", "other bytes", "kernels gone", "all gone"])
def test_damage_on_disk_costs_time_only(damage, fresh, tmp_path, monkeypatch):
    wanted, _ = run(finish(step_of(), 1))
    plan = tmp_path / f"{fingerprint(step_of(), 1, current())}.o"
    data = plan.read_bytes()
    if damage == "truncated":
        plan.write_bytes(data[: len(data) // 2])
    elif damage == "other bytes":
        plan.write_bytes(data[:-9] + b"x" * 9)
    else:
        for file in tmp_path.iterdir():
            if damage == "all gone" or file != plan:
                file.unlink()
    fresh()
    found, _ = run(finish(step_of(), 1))
    assert all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))
    fresh()
    monkeypatch.setattr(pipeline, "plan", refuse)
    finish(step_of(), 1)


def test_a_recipe_survives_its_bytes():
    recipe = recipe_of(plan(optimize(step_of()), Generator(current()), 2))
    keys = {call.function: call.name for call in recipe.calls}
    data = dump(recipe, keys.__getitem__)  # pyright: ignore[reportArgumentType]
    assert data is not None
    again = load(data)
    assert dump(again, lambda kernel: kernel.key) == data
    assert [c.args for c in again.calls] == [c.args for c in recipe.calls]
    assert (again.arena, again.fetches) == (recipe.arena, recipe.fetches)


def test_what_lapack_computes_is_kept_also_in_loops(fresh, monkeypatch):
    def step() -> Step:
        with Graph().as_default() as graph:
            x: Any = ops.placeholder(dtype="float32", shape=(3, 3))
            body = trace(lambda x: cholesky(x @ T(x) + np.eye(3, dtype=np.float32)), [x.type])
            y = ops.scan(x, body=body, length=4, carried=1, mapped=0)
            y = cholesky(x) @ y
        return specialize(Request(graph, (y,), (), (x,)), [x.type], {}, {})

    x = np.eye(3, dtype=np.float32)
    (wanted,) = finish(step(), 1).run([x], State())
    fresh()
    monkeypatch.setattr(pipeline, "plan", refuse)
    loaded = finish(step(), 1)
    (found,) = loaded.run([x], State())
    np.testing.assert_array_equal(found, wanted)
    monkeypatch.undo()
    told = r"host_call: .*not positive definite: host_call.*test_stored_program"
    with pytest.raises(np.linalg.LinAlgError, match=told):
        loaded.run([-x], State())


def test_what_calls_a_function_of_the_users_is_not_kept(fresh, tmp_path):
    with Graph().as_default() as graph:
        x = ops.placeholder(dtype="float32", shape=(3,))
        y = ops.host_call(x, function=np.negative, dtypes=("float32",), shapes=((3,),))
    step = specialize(Request(graph, (y,), (), (x,)), [x.type], {}, {})
    for _ in range(2):
        (found,) = finish(step, 1).run([np.ones(3, np.float32)], State())
        np.testing.assert_array_equal(found, -np.ones(3))


@pytest.mark.slow
def test_plans_are_the_same_in_every_process(tmp_path):
    code = """
    import hashlib
    from test_stored_program import step_of, optimize, plan, Generator, current, recipe_of, dump
    from weft.runtime.compilation.compiler import key_of
    recipe = recipe_of(plan(optimize(step_of()), Generator(current()), 2))
    print(hashlib.sha256(dump(recipe, lambda k: key_of(k, current()))).hexdigest())
    """
    here = Path(__file__).parent
    environment = {**os.environ, "PYTHONPATH": str(here.parent)}
    found = {
        subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True,
            check=True, cwd=here, env={**environment, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(found) == 1


def test_a_compile_error_is_one_however_often(fresh, monkeypatch):
    def broken(*_: Any) -> Any:
        raise CompileError("no kernel")

    monkeypatch.setattr(generator, "lower", broken)
    for _ in range(2):
        with pytest.raises(CompileError, match="no kernel"):
            finish(step_of(), 1)
