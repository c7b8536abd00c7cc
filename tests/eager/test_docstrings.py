"""The examples in the docstrings of the eager front end run."""

import doctest
import importlib
import pkgutil

import pytest

import weft.eager

MODULES = [
    "weft.autograd",
    *[m.name for m in pkgutil.walk_packages(weft.eager.__path__, "weft.eager.")],
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_a_module(name):
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0
