"""Which tier runs a structure: by structure and counts alone, and without a compiler."""

from __future__ import annotations

import subprocess
import sys
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft as wf
from weft import config, func
from weft.eager.record.run import program, stitch, tier_choice
from weft.eager.record.run.compiled_tier import Compiled
from weft.eager.record.run.stitched_tier import Compiling, LibraryProgram, Stitched
from weft.eager.tensor.dispatch import recorded
from weft.errors import NoCompilerError, WeftError
from weft.ir.node import Value
from weft.ir.shape import known
from weft.library import payoff
from weft.ops.boundary import host
from weft.runtime.compilation import compiler


@pytest.fixture
def met(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[type]]:
    """The tier of each run."""
    found: list[type] = []

    def begun(*args: Any) -> Any:
        tier, compute = tier_choice.begun(*args)
        found.append(type(tier))
        return tier, compute

    monkeypatch.setattr(program, "begun", begun)
    monkeypatch.setattr(tier_choice, "_tiers", OrderedDict())
    return found


def test_the_change_comes_at_one_run_whatever_the_cache_holds(met, tmp_path, monkeypatch):
    x = wf.arange(6.0)
    wf.synchronize()
    for _ in ("cold", "warm"):
        met.clear()
        monkeypatch.setattr(tier_choice, "_tiers", OrderedDict())
        with config.override(cache=str(tmp_path)):
            for run in range(6):
                assert (x * 3.0 + run).sum().item() == 45.0 + 6 * run
        assert met == [Stitched, Stitched, Compiling, Compiled, Compiled, Compiled]


def test_a_program_is_begun_where_it_pays_off_and_takes_over_as_estimated(met, monkeypatch):
    monkeypatch.setattr(payoff, "COMPILE_SECONDS", 5e-3)
    monkeypatch.setattr(payoff, "LAUNCH_SECONDS", 0.02)
    monkeypatch.setattr(payoff, "SAVED", 2e5)
    monkeypatch.setattr(payoff, "BESIDE", 2)
    for size, before, beside in ((40, 6, 6), (4000, 2, 4)):
        x = wf.arange(float(size))
        wf.synchronize()
        met.clear()
        for run in range(before + beside + 2):
            assert (x * 3.0 + run).sum().item() == 1.5 * size * (size - 1) + size * run
        assert met == [Stitched] * before + [Compiling] * beside + [Compiled] * 2


def test_a_loop_runs_on_library_kernels_until_its_program_is_there(met, monkeypatch):
    weights = wf.arange(9.0).reshape(3, 3) / 9
    grown = lambda s: (s[0] + 1, s[1] * 1.5)  # noqa: E731
    turn = lambda h, x: (wf.tanh(h @ weights + x), h * x)  # noqa: E731
    xs, found = wf.arange(15.0).reshape(5, 3) / 7, []
    wf.synchronize()
    met.clear()
    for _ in range(4):
        h, rows = func.scan(turn, wf.ones(3), xs)
        count = wf.while_loop(lambda s: (s[1].sum() < 1e4) & (s[0] < 50), grown, (wf.tensor(0), h))
        found.append([h.tolist(), rows.tolist(), count[0].item(), count[1].tolist()])
    assert found[0] == found[1] == found[2] == found[3]
    assert set(met[:2]) == {LibraryProgram} and set(met) == {LibraryProgram, Compiling, Compiled}
    met.clear()
    monkeypatch.setattr(payoff, "COMPILE_SECONDS", 5e-3)
    for _ in range(4):  # five iterations take little
        assert func.scan(turn, wf.ones(3), xs)[0].tolist() == found[0][0]
    assert met == [LibraryProgram] * 4


def test_a_run_goes_on_while_there_is_no_compiler_for_its_program(met, monkeypatch):
    x = wf.arange(7.0)
    wf.synchronize()
    for run in range(8):
        patched = monkeypatch.context()
        with patched as patch:
            if run in (2, 3, 4):
                patch.setattr(compiler._compiler, "demand", _refused)
                patch.setattr(compiler, "available", lambda: False)
            assert (x * 5.0 + run).sum().item() == 105.0 + 7 * run
    assert met == [Stitched] * 2 + [Compiling] * 4 + [Compiled] * 2


def _refused() -> None:
    raise NoCompilerError("none")


class Doubling:
    """A function in Python, between other calls."""

    def __init__(self) -> None:
        self.seen: list[list[float]] = []

        def compute(x: Any) -> Any:
            if x[0] < 0:
                raise ValueError("negative")
            self.seen.append(x.tolist())
            return x * 2

        def doubled(x: Value) -> Value:
            (found,) = host.call(compute, x, types_of=[(x.dtype, known(x.shape))])
            return found

        self.run = recorded(doubled, differentiable=False)


def test_a_call_of_python_is_made_between_lists_of_kernels(met):
    double = Doubling()
    for first in range(5):
        x = wf.arange(3.0) + first
        y = double.run(x + 1.0)
        assert (double.run(y * 0.5) + x).tolist() == [3.0 * (first + i) + 2.0 for i in range(3)]
    assert len(double.seen) == 10 and double.seen[0] == [1.0, 2.0, 3.0]
    assert met == [Stitched] * 2 + [Compiling] + [Compiled] * 2


def test_an_error_of_python_names_the_line_of_its_call(met):
    double = Doubling()
    assert double.run(wf.ones(2)).tolist() == [2.0, 2.0]
    with pytest.raises(WeftError, match=r"negative.*created at test_tier_choice.py:\d+") as one:
        double.run(wf.zeros(2) - 1.0).tolist()
    with pytest.raises(WeftError) as other:
        double.run(wf.zeros(2) - 1.0).tolist()
    lines = [str(error.value).rpartition(":")[2] for error in (one, other)]
    assert int(lines[1].rstrip(")")) == int(lines[0].rstrip(")")) + 2
    assert met == [Stitched] * 3


def test_complex_numbers_stay_between_lists_of_kernels(met):
    x = wf.tensor([3.0, 4.0], requires_grad=True)
    for run in range(6):
        x.grad = None
        z = wf.complex(x * 2.0, wf.ones(2) * run)
        y = (z * z.conj()).real.sum()
        y.backward()
        assert y.item() == pytest.approx(100.0 + 2 * run**2)
        np.testing.assert_allclose(x.grad.tolist(), [24.0, 32.0], 1e-6)
    assert set(met) <= {Stitched, Compiling} and met[-1] is Stitched


def test_tiers_are_told(capsys):
    with config.override(debug=1):
        for _ in range(4):
            (wf.arange(9.0) * 7.0).sum().item()
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("# tier of")]
    assert [line.partition(": ")[2] for line in said] == [
        "library kernels: it has run 0 times",
        "library kernels, while those of its own program are compiled",
        "a program of its own",
    ]


WITHOUT = """
    import ctypes, sys
    import weft as wf
    from weft import func
    if {hardened}:  # no memory becomes executable from here on
        if ctypes.CDLL(None).prctl(65, 1, 0, 0, 0):
            print("unknown to this system")
            raise SystemExit
    else:
        sys.executable = "/nowhere/python"
    x = wf.tensor([1.0, 2.0], requires_grad=True)
    for _ in range(4):
        x.grad = None
        y = (x * x).exp().sum()
        y.backward()
    assert abs(y.item() - 57.316) < 1e-2 and abs(x.grad.tolist()[1] - 218.39) < 1e-1
    assert wf.while_loop(lambda i: i < 5, lambda i: i + 1, 0).item() == 5
    assert func.grad(lambda x: (x * x).sum())(wf.ones(3)).tolist() == [2.0] * 3
    print("interpreted")
"""


@pytest.mark.parametrize("hardened", [True, False])
def test_where_no_code_can_be_made_numpy_computes(hardened: bool, tmp_path: Path) -> None:
    """No process can be started, or no memory be made executable: it is said once."""
    text = "\n".join([line[4:] for line in WITHOUT.format(hardened=hardened).splitlines()])
    environment = {"WEFT_CACHE": str(tmp_path), "PYTHONPATH": str(Path(wf.__file__).parents[1])}
    found = subprocess.run(
        [sys.executable, "-c", text], env=environment, capture_output=True, text=True, check=False
    )
    if found.stdout.strip() != "unknown to this system":
        assert found.stdout.strip() == "interpreted", found.stderr
        assert found.stderr.count("nothing is compiled: ") == 1


def test_deterministic_mode_takes_effect_at_once_in_half_precision(met):
    for deterministic in (False, True, False):
        with config.override(deterministic=deterministic):
            (wf.arange(11.0, dtype=wf.bfloat16) * 7.0).sum().item()
    assert met == [Stitched, Compiled, Compiled]


def test_many_calls_in_another_number_each_time_stay_lists(met):
    x = wf.arange(5.0)
    wf.synchronize()

    def chain(calls: int) -> float:
        y = x
        for _ in range(calls):
            y = y * 0.5 + 1.0
        return y.sum().item()

    for calls in range(17, 25):
        assert chain(calls) == pytest.approx(10, abs=1e-3)
    met.clear()
    for _ in range(4):
        chain(24)
    assert met == [Stitched] * 4


def test_gradients_of_functions_are_lists(monkeypatch):
    def whole(*_: Any):
        raise AssertionError("made anew at each run")

    monkeypatch.setattr(stitch, "_whole", whole)
    for size in (3, 4):
        x = wf.arange(float(size))
        value, slope = func.value_and_grad(lambda x: (wf.exp(x) * x).sum())(x)
        assert slope.numpy() == pytest.approx(np.exp(x.numpy()) * (1 + x.numpy()), rel=1e-5)
        assert value.item() == pytest.approx(float((np.exp(x.numpy()) * x.numpy()).sum()), rel=1e-5)
