"""The examples in the docstrings of the eager front end run."""

import doctest
import importlib
import pkgutil

import pytest

import weft as wf
import weft.eager
from weft.ops.declaration.face import FACES

MODULES = [
    "weft.autograd",
    *[m.name for m in pkgutil.walk_packages(weft.eager.__path__, "weft.eager.")],
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_a_module(name):
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


def test_examples_of_faces():
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner()
    shown = [source.face for source in FACES.values() if source.face.example]
    for face in shown:
        runner.run(parser.get_doctest(face.documented(), {"wf": wf}, face.torch, None, None))
    assert runner.failures == 0
    assert runner.tries == len(shown) > 80
