"""The runner of other projects' suites, on synthetic checkouts."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tools.suites import runner
from tools.suites.__main__ import main
from tools.suites.scope import reason_out_of_scope
from tools.suites.worker import described

pytestmark = pytest.mark.slow  # each starts a process that imports the mirror of PyTorch

SUITE = """
import os
import time
import unittest
import unittest.mock
import warnings
import torch
import torch.nn.functional as F
from torch.no_such_part import decorate
from torch.nothing import Base
from torch.autograd.gradcheck import gradcheck

CONSTANT = torch.no_such_constant
DEVICES = [torch.device("cpu"), torch.device("cuda:0")]
if torch.cuda.is_available():
    raise AssertionError("there is no such device")


@decorate
def decorated():
    pass


class Derived(Base):
    pass


for name in CONSTANT.modules.__all__:
    raise AssertionError("it has no names")


class TestIt(unittest.TestCase):
    def test_passes(self):
        self.assertIsInstance(torch.ones(2), torch.Tensor)
        self.assertEqual(F.relu(torch.tensor([-1.0, 2.0])).tolist(), [0.0, 2.0])

    def test_fails(self):
        self.assertEqual(torch.ones(2).sum().item(), 3)

    def test_lacks_a_function(self):
        torch.no_such_function(1)

    def test_lacks_what_the_import_gave(self):
        CONSTANT.x

    def test_lacks_what_decorates(self):
        decorated()

    @decorate
    def test_lacks_its_decorator(self):
        pass

    @torch.backends.cudnn.flags(enabled=False)
    def test_flags_change_nothing(self):
        self.assertTrue(torch.nn.modules.__all__.index("Linear") >= 0)
        self.assertNotIn("functional", torch.nn.modules.__all__)

    def test_warnings_are_recorded(self):
        for _ in range(2):
            with warnings.catch_warnings(record=True) as seen:
                warnings.warn("this happens")
                warnings.warn("this happens")  # its words and line, once
            self.assertEqual(len(seen), 2)
            self.assertTrue("something happens" in str(seen[-1].message))
        from expecttest import TestCase

        with TestCase().assertWarnsRegex(UserWarning, "something happens"):
            warnings.warn("this happens")

    def test_trees(self):
        from torch.utils import _pytree as pytree

        leaves, tree = pytree.tree_flatten({"a": 1, "b": (2, [3])})
        self.assertEqual(pytree.tree_map(lambda x: 2 * x, {"a": 1}), {"a": 2})
        self.assertEqual(pytree.tree_unflatten(leaves, tree), {"a": 1, "b": (2, [3])})

    def test_parameters_survive_a_mock(self):
        with unittest.mock.patch.object(torch.nn.Parameter, "__new__"):
            pass
        self.assertEqual(torch.nn.Parameter(torch.ones(2)).tolist(), [1, 1])

    def test_functions_called_like_modules(self):
        x = torch.ones(2, dtype=torch.float64, requires_grad=True)
        self.assertTrue(torch.autograd.gradcheck(torch.sin, (x,)))

    def test_hooks_are_forgotten(self):
        module, calls = torch.nn.modules.module, []
        module.register_module_forward_hook(lambda *given: calls.append(1))
        module.register_module_forward_pre_hook(lambda *given: calls.append(2))
        module._global_forward_hooks = {}
        torch.nn.Linear(1, 1)(torch.ones(1))
        self.assertEqual(calls, [2])
        module._global_forward_pre_hooks = {}
        torch.nn.Linear(1, 1)(torch.ones(1))
        self.assertEqual(calls, [2])

    def test_lacks_a_base(self):
        Derived()

    def test_lacks_a_module(self):
        import torch.no_such_module

    def test_on_cuda(self):
        torch.ones(2).cuda()

    def test_is_too_slow(self):
        while True:
            time.process_time()

    def test_is_too_slow_and_goes_on(self):
        for _ in range(2):
            try:
                self.test_is_too_slow()
            except BaseException as problem:
                again = problem
        raise again

    def test_crashes(self):
        os._exit(9)

    def test_crashes_with_the_status_of_failed_tests(self):
        os._exit(1)

    @unittest.expectedFailure
    def test_succeeds_unexpectedly(self):
        pass

    @unittest.skip("not today")
    def test_skipped(self):
        pass

    def test_zz_runs_after_the_crash(self):
        pass
"""
DEVICES = """
import torch

def _dtype_test_suffix(dtypes):
    return "_" + str(dtypes) if dtypes else ""


def suffixes():
    return [_dtype_test_suffix(d) for d in (None, torch.int8, torch.no_such, [torch.int8] * 2)]
"""
HARNESS = "import torch\nZEROS = torch.zeros(2)\nINPLACE = torch.Tensor.no_such_method\n"
USER = """
import unittest
import torch
from torch.testing import INPLACE, ZEROS
from torch.testing._internal.common_device_type import suffixes

SUFFIXES = suffixes()


class TestHarness(unittest.TestCase):
    def test_it_makes_tensors(self):
        self.assertEqual(ZEROS.tolist(), [0.0, 0.0])

    def test_it_names_what_is_absent(self):
        INPLACE()

    def test_names_of_absent_types_differ(self):
        found = ["", "_int8", "_no_such", "_int8_int8"]
        self.assertEqual(SUFFIXES, found)

    def test_a_device_is_one(self):
        self.assertIsInstance(torch.zeros(1).device, torch.device)
"""


@pytest.fixture
def checkout(tmp_path):
    (tmp_path / "test" / "nn").mkdir(parents=True)
    (tmp_path / "test" / "test_it.py").write_text(SUITE)
    (tmp_path / "torch" / "testing").mkdir(parents=True)
    (tmp_path / "torch" / "testing" / "__init__.py").write_text(HARNESS)
    internal = tmp_path / "torch" / "testing" / "_internal"
    internal.mkdir()
    (internal / "common_device_type.py").write_text(DEVICES)
    (tmp_path / "test" / "nn" / "test_harness.py").write_text(USER)
    return tmp_path


def outcomes(checkout, *arguments):
    """Of each test, and the status of the command."""
    found = checkout / "found.json"
    status = main(["--pytorch", str(checkout), *arguments, "--json", str(found)])
    return {o["test"].partition("::")[2]: o for o in json.loads(found.read_text())}, status


def test_every_kind_of_outcome_is_reported(checkout, capsys):
    found, status = outcomes(checkout, "test_it", "--timeout", "4", "--list-failures")
    assert status == 1
    told = {test: o["outcome"] for test, o in found.items()}
    assert told == {
        "test_passes": "passed",
        "test_fails": "failed",
        "test_lacks_a_function": "failed",
        "test_lacks_what_the_import_gave": "failed",
        "test_lacks_what_decorates": "failed",
        "test_lacks_its_decorator": "failed",
        "test_flags_change_nothing": "passed",
        "test_warnings_are_recorded": "passed",
        "test_trees": "passed",
        "test_parameters_survive_a_mock": "passed",
        "test_functions_called_like_modules": "passed",
        "test_hooks_are_forgotten": "passed",
        "test_lacks_a_base": "failed",
        "test_lacks_a_module": "failed",
        "test_on_cuda": "excluded",
        "test_is_too_slow": "failed",
        "test_is_too_slow_and_goes_on": "failed",
        "test_crashes": "failed",
        "test_crashes_with_the_status_of_failed_tests": "failed",
        "test_succeeds_unexpectedly": "passed",
        "test_skipped": "skipped",
        "test_zz_runs_after_the_crash": "passed",
    }
    assert found["test_fails"]["error"].startswith("AssertionError: 2.0 != 3\n  at ")
    assert "test_it.py:" in found["test_fails"]["error"]
    for test, path in {
        "test_lacks_a_function": "torch.no_such_function",
        "test_lacks_what_the_import_gave": "torch.no_such_constant",
        "test_lacks_what_decorates": "torch.no_such_part.decorate: ",
        "test_lacks_its_decorator": "torch.no_such_part.decorate: ",
        "test_lacks_a_base": "torch.nothing.Base",
        "test_lacks_a_module": "torch.no_such_module",
    }.items():
        assert path in found[test]["error"]
    assert "took longer than 4 s" in found["test_is_too_slow"]["error"]
    assert found["test_crashes"]["error"] == "process ended with 9"
    printed = capsys.readouterr().out
    assert "| test_it | 9 | 11 | 45.0% | 1 | 1 |" in printed
    assert "| CUDA and other devices: Weft is for CPUs | 1 |" in printed
    assert "test_it::TestIt::test_fails\n    AssertionError: 2.0 != 3" in printed


def test_the_harness_of_the_checkout_is_used(checkout):
    found, status = outcomes(checkout, "nn/test_harness")
    assert {test: o["outcome"] for test, o in found.items()} == {
        "test_it_makes_tensors": "passed",
        "test_it_names_what_is_absent": "failed",
        "test_names_of_absent_types_differ": "passed",
        "test_a_device_is_one": "passed",
    }
    assert status == 1
    assert (
        "torch.Tensor.no_such_method: Weft has none"
        in found["test_it_names_what_is_absent"]["error"]
    )
    assert not list(checkout.rglob("__pycache__"))


def test_keywords_choose_tests(checkout):
    found, status = outcomes(checkout, "test_it", "-k", "passes")
    assert list(found) == ["test_passes"]
    assert status == 0


def test_a_missing_file_is_named(checkout):
    with pytest.raises(SystemExit, match=r"there is no .*test_nowhere\.py"):
        main(["--pytorch", str(checkout), "test_nowhere"])


def test_the_command_explains_itself():
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-m", "tools.suites", "--help"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert "--list-failures" in done.stdout


@pytest.mark.parametrize(
    ("test", "error", "reason"),
    [
        ("test_x::T::test_sum_cpu_float32", "AssertionError: 1 != 2", None),
        ("test_x::T::test_sum_cuda", "", "CUDA and other devices: Weft is for CPUs"),
        ("test_x::T::test_a", "AttributeError: torch.jit.script: Weft has none", "TorchScript"),
        ("test_x::T::test_pickle_cpu", "", "pickle"),
        ("test_x::T::test_a", "AttributeError: 'Tensor' object has no attribute '_b'", "inside"),
        ("test_x::T::test_a", "AttributeError: 'Tensor' object has no attribute 'b'", None),
        ("test_reductions::T::test_dim_none_masked_sum_cpu", "", "torch.masked"),
        ("test_x::T::test_masked_fill_cpu", "", None),
        ("test_x::T::test_a", "OverflowError: Python integer -1 out of bounds for uint8", "what"),
        ("test_x::T::test_numpy_array_binary_ufunc_promotion_cpu", "", "an array of NumPy's"),
    ],
)
def test_the_scope_is_of_what_a_test_is_about(test, error, reason):
    found = reason_out_of_scope(test, error)
    assert found is None if reason is None else found is not None and found.startswith(reason)


def test_a_file_that_cannot_be_imported_is_never_out_of_scope(checkout):
    (checkout / "test" / "test_broken.py").write_text("raise ValueError('cuda, torch.jit')\n")
    assert outcomes(checkout, "test_broken")[0][""]["outcome"] == "failed"


def test_errors_that_cause_each_other_are_described_once():
    first, second = ValueError("one"), ValueError("two")
    first.__cause__, second.__cause__ = second, first
    assert described(first) == "ValueError: one\nbecause of ValueError: two"


def test_what_ran_before_the_command_was_stopped_is_reported(checkout, capsys, monkeypatch):
    def stopped(order, scratch):
        row = {"test": "T::test_a", "outcome": "passed", "error": ""}
        Path(order.out).write_text(json.dumps(row) + '\n{"start": "T::test_b"}\n')
        raise SystemExit(143)

    monkeypatch.setattr(runner, "_process", stopped)
    assert main(["--pytorch", str(checkout), "test_it"]) == 1
    printed = capsys.readouterr()
    assert "test_it: stopped after 1 tests; the others are not counted" in printed.err
    assert "| test_it | 1 | 0 | 100.0% | 0 | 0 |" in printed.out


HIPS = """
import pytest

import autograd.numpy as np
import autograd.numpy.random as npr
from autograd import deriv, grad, jacobian
from autograd.core import vspace
from autograd.test_util import check_grads

DRAWN = []


def test_gradients_of_numbers():
    assert abs(grad(lambda x, y: x * np.sin(y), argnum=1)(2.0, 0.0) - 2) < 1e-12
    assert abs(deriv(lambda z: z * 1j)(1.0 + 0j) - 1j) < 1e-12
    assert jacobian(lambda x: x * x)(np.array([1.0, 2.0])).tolist() == [[2, 0], [0, 4]]


def test_structures_are_vectors():
    space = vspace({"a": 1.0, "b": [np.array([1.0, 2j])]})
    assert space.size == 3 and space == vspace(space.randn()) != vspace(1.0)
    assert len(list(space.standard_basis())) == 5
    assert space.inner_prod(space.ones(), space.ones()) == 3


def test_values_are_looked_at_where_an_error_is_expected():
    with pytest.raises(RuntimeError):
        np.linalg.inv(np.zeros((2, 2)))


@pytest.mark.parametrize("number", [1, 2])
def test_each_test_draws_the_same(number):
    DRAWN.append(npr.randn())
    assert DRAWN[0] == DRAWN[-1]


def test_wrong_gradients_fail():
    check_grads(np.abs)(0.0)


def test_lacks_a_function():
    np.no_such_function(1)
"""
UTIL = "def check_grads(f):\n    return lambda x: exec('assert f(x) != 0')\n"


def test_the_suite_of_autograd_runs_on_numbers(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "autograd").mkdir()
    (tmp_path / "tests" / "test_it.py").write_text(HIPS)
    (tmp_path / "autograd" / "test_util.py").write_text(UTIL)
    found = tmp_path / "found.json"
    assert main(["--autograd", str(tmp_path), "--json", str(found)]) == 1
    failed = {o["test"] for o in json.loads(found.read_text()) if o["outcome"] != "passed"}
    assert failed == {"test_wrong_gradients_fail", "test_lacks_a_function"}
    assert len(json.loads(found.read_text())) == 7
