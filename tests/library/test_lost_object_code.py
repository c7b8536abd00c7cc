"""Kernels on disk that are gone or damaged are written again; without a compiler there are none."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from weft import config
from weft.codegen.target import current
from weft.eager.record.call.plan import placeholders
from weft.eager.record.run.stitch import computing
from weft.ir.dtype import float32
from weft.ir.graph import Graph
from weft.ir.node import TensorType
from weft.library import entry, variant
from weft.library.case import Case, Made
from weft.library.formula import Formula
from weft.library.routine import routine
from weft.library.variant import Code
from weft.ops.declaration import catalogue
from weft.runtime.compilation import compiler as module
from weft.runtime.compilation.compiler import Compiler
from weft.runtime.execution import driver


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with config.override(cache=str(tmp_path / "cache")):
        yield tmp_path / "cache"


@pytest.fixture
def begin(monkeypatch: Any, folder: Path) -> Iterator[Any]:
    """Forgets what a process knows, as if a new one began."""
    begun: list[Compiler] = []
    driver.entries()  # of the compiler that stays: code goes with the compiler that linked it

    def forget() -> None:
        begun.append(Compiler())
        monkeypatch.setattr(module, "_compiler", begun[-1])
        monkeypatch.setattr(entry, "_entries", {})
        monkeypatch.setattr(entry, "_new", [])
        monkeypatch.setattr(variant, "_codes", {})

    forget()
    yield forget
    for each in begun:
        each.close()


def _case(n: int) -> Case:
    with Graph().as_default() as graph:
        (x,) = placeholders([TensorType(float32, (n, 3))])
        y = catalogue.sum(catalogue.tanh(x), axes=(0,))
    return Case(Made(routine(graph, [y], [x], current())), Formula())


def _run(n: int) -> Case:
    case, x = _case(n), np.ones((n, 3), np.float32)
    (y,) = computing(case, b"", [x], [TensorType(float32, (3,))]).run().arrays
    np.testing.assert_allclose(y, n * np.tanh(np.ones(3)), 1e-5)
    return case


def _codes(case: Case) -> list[Code]:
    variants = [v for part in case.routine.parts for v in part.entry.variants]
    return [template.code for variant in variants for template in variant.templates]


@pytest.mark.parametrize("spoiled", [None, b"", b"damaged"])
def test_kernels_that_are_lost_after_their_entry_was_read(begin, folder, spoiled):
    for n in (7, 1000):
        _run(n)
    begin()
    codes = _codes(_case(9))
    assert codes and not any([code.kernel.ir for code in codes])  # all is known from the disk
    for file in folder.glob("*.o"):
        if spoiled is None:
            file.unlink()
        else:
            file.write_bytes(spoiled)
    case = _run(9)
    assert any([code.address and not code.kernel.ir for code in _codes(case)])
    begin()
    codes = _codes(_case(9))
    assert not any([code.kernel.ir for code in codes])  # they are on disk again
    _run(9)


NO_COMPILER = """
    import sys, warnings
    sys.executable = "/nonexistent/python"
    import weft as wf
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for n in range(3, 9):
            x = wf.arange(float(n)).requires_grad_()
            (x * x).sum().backward()
            assert x.grad.tolist() == [2.0 * i for i in range(n)]
    print([str(each.message).partition(":")[0] for each in told])
"""
AT_THE_END = """
    import builtins
    import weft as wf
    class Last:
        def __init__(self):
            self.x = wf.arange(5.0)
        def __del__(self):
            print((self.x.cumsum(0) * 3.0).sum().item())
    assert (Last().x * 1.0).sum().item() == 10.0
    builtins.last = Last()
"""


@pytest.mark.parametrize(
    "script, said",
    [(NO_COMPILER, "['nothing is compiled']"), (AT_THE_END, "60.0\n60.0")],
)
def test_values_without_a_compiler(script, said, folder):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True, text=True, timeout=120,
        env={**module.os.environ, "WEFT_CACHE": str(folder)},
    )  # fmt: skip
    assert done.stdout.strip() == said, done.stderr
    assert not done.stderr


def test_a_variant_whose_kernels_are_not_there_leaves_the_others(monkeypatch: Any) -> None:
    made = {
        name: SimpleNamespace(templates=[SimpleNamespace(code=SimpleNamespace(kernel=name))])
        for name in ("linked", "never needed")
    }
    stored = SimpleNamespace(load=lambda _: b'["never needed", "linked"]')
    monkeypatch.setattr(entry.compiler, "cache", lambda: stored)
    monkeypatch.setattr(entry.compiler, "knows", lambda kernel, _: kernel == "linked")
    monkeypatch.setattr(entry, "from_data", lambda data, _: made[data])
    assert entry._kept("", current()) == [made["linked"]]
