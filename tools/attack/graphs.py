"""Random programs: compiled equals interpreted and PyTorch, with equal bits on any threads.

The programs are those of the tests: `tests/drawn_graph.py` and `tests/torch/drawn_program.py`.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

import weft
from tools.attack.verdict import OTHER, WRONG, Case, Verdict
from weft import config
from weft.errors import WeftError
from weft.ir.dtype import float32, float64

TESTS = Path(__file__).resolve().parents[2] / "tests"
Bits = list[bytes]


def begin() -> Case:
    """Loads the program generators; PyTorch's too, where it is installed."""
    sys.path[:0] = [str(TESTS), str(TESTS / "torch")]
    graphs: Any = importlib.import_module("drawn_graph")
    kinds: list[Callable[[int, int], None]] = [lambda s, n: _graph(graphs, s, n)]
    found = importlib.util.find_spec("torch")
    if found is not None and found.origin is not None:  # not the tests' folder of that name
        programs: Any = importlib.import_module("beside_torch")
        # OpenMP's threads do not exist in a forked process
        importlib.import_module("torch").set_num_threads(1)
        kinds.append(lambda s, n: _program(programs, s, n))

    def case(random: np.random.Generator) -> Verdict:
        kind = int(random.integers(len(kinds)))
        seed, steps = int(random.integers(1 << 32)), int(random.integers(2, 26))
        told = f"{('a graph', 'a program')[kind]} of seed {seed}, {steps} steps"
        return judged(lambda: kinds[kind](seed, steps), told)

    return case


def judged(check: Callable[[], None], told: str) -> Verdict:
    """The verdict on a program that `check` runs."""
    try:
        check()
    except AssertionError as error:
        return Verdict(WRONG, "another value", f"{told}: {error}"[:1500])
    except WeftError as error:
        return Verdict(OTHER, f"refused: {type(error).__name__}", f"{told}: {error}"[:1500])
    return Verdict()


def _graph(library: Any, seed: int, steps: int) -> None:
    """Values and gradients of a graph of operations, compared with the interpreter."""
    drawing = library.Drawing(seed, float64 if seed % 3 else float32)
    ys = drawing.grow(steps)
    if seed % 2:
        ys = [*ys, *library.slopes(drawing, ys)]
    one = library.compiled(drawing, ys, threads=1)
    library.check(drawing, ys, one)
    _alike(_bits(one), _bits(library.compiled(drawing, ys, threads=2)))


def _program(library: Any, seed: int, steps: int) -> None:
    """Values and gradients of an eager program, interpreted and compiled, compared with PyTorch."""
    library.check(seed, steps, 1)
    program = library.Program(seed, steps)
    found: list[Bits] = []
    for threads in (1, 2):
        with config.override(compile=True, threads=threads), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            library.check(seed, steps, 1)
            found.append(_bits_of(library, program))
    _alike(*found)


def _bits_of(library: Any, program: Any) -> Bits:
    """The digest of values and gradients; none if an in-place change invalidates a gradient."""
    try:
        values, slopes = library.outcome(program, weft)
        return _bits([x.numpy(force=True) for x in [*values, *(slopes or [])] if x is not None])
    except WeftError:
        return []


def _bits(arrays: Iterable[Any]) -> Bits:
    return [np.asarray(y).tobytes() for y in arrays]


def _alike(one: Bits, two: Bits) -> None:
    assert one == two, "one thread and two give other bits"
