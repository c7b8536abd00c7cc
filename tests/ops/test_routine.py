"""Functions of arrays that graphs on disk and on other tasks name."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys

import pytest

import weft.ops
from weft.errors import GraphError
from weft.ir.parser import parse_graph
from weft.ops.boundary import routine as module
from weft.ops.boundary.routine import Routine

TEXT = 'graph {{\n  %y: float32[] = host_call() {{function: Routine(name: "{}", values: ())}}\n}}'


def test_every_module_declares_the_functions_by_which_others_name_them() -> None:
    for found in pkgutil.walk_packages(weft.ops.__path__, "weft.ops."):
        importlib.import_module(found.name)
    names = [name for name in module._FUNCTIONS if name.startswith("weft.")]
    assert len(names) > 20
    for name in names:
        folder, _, own = name.rpartition(".")
        assert getattr(importlib.import_module(folder), own) == Routine(name)


def test_a_process_that_has_not_imported_the_module_finds_the_function() -> None:
    code = """if True:
        from weft.ops.boundary.routine import Routine
        print(Routine("weft.ops.random.discrete._poisson").name)"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "weft.ops.random.discrete._poisson\n"


@pytest.mark.parametrize("name", ["os.system", "weft.cli.main", "numpy.load", "weft.absent.x"])
def test_a_text_cannot_name_any_other_function(name: str) -> None:
    with pytest.raises(GraphError, match=f"no function '{name}'"):
        parse_graph(TEXT.format(name))
