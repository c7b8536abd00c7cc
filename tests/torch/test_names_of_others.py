"""The tables of other libraries' names, and what is told of a program by its text."""

import ast
import importlib

import pytest

from tools.compat.listing import read
from tools.compat.page import pages
from weft.as_torch import table
from weft.as_torch.mirror import found, has
from weft.as_torch.uses import uses

OPTIONAL = ("tqdm",)


def test_every_row_leads_somewhere():
    for places in table.modules().values():
        for place in places:
            importlib.import_module(place)
    for place in table.names().values():
        module, _, name = place.partition(":")
        if not module.startswith(OPTIONAL):
            assert hasattr(importlib.import_module(module), name), place


def test_public_modules_are_those_of_the_library():
    listed = {name for library in ("torch", "lightning", "torchmetrics", "horovod")
              for name in read(library)[1]}  # fmt: skip
    parts = {name for name in listed if name.rpartition(".")[2][:1].islower()}
    private = {name for name in table.modules() if "._" in name or name.startswith("pytorch_")}
    known = {name for name in table.modules() if name in parts}
    left_out = set(table.modules()) - known - private
    assert all(
        name.startswith(
            (
                "torch.fx",
                "torch.onnx",
                "torch.ops",
                "torch.library",
                "torch.mtia",
                "torch.profiler",
                "torch.ao",
            )
        )
        for name in left_out
    )


def test_what_is_absent_on_purpose_is_absent():
    wrong = [name for name in table.reasons() if not name.endswith("*") and has(name)]
    assert wrong == []
    assert not [name for name in table.later() if has(name) and name not in table.modules()]


def test_the_pages_are_current():
    for path, text in pages().items():
        assert path.read_text() == text, "run python -m tools.compat"


def missing(text):
    return [use.missing.partition(":")[0] for use in uses(ast.parse(text)) if use.missing]


@pytest.mark.parametrize(
    ("text", "absent"),
    [
        ("import torch as t\nt.nn.Foo(1)", ["torch.nn.Foo"]),
        ("import torch.nn as nn\nnn.functional.foo", ["torch.nn.functional.foo"]),
        ("from torch import nn\nnn.Module.foo", ["torch.nn.Module.foo"]),
        (
            "import pytorch_lightning as pl\npl.Trainer(gpus=1)",
            ["pytorch_lightning.Trainer(gpus=)"],
        ),
        ("import torch\ndef f():\n  x = torch.ones(1)\n  return x.foo()", ["torch.Tensor.foo"]),
        # what is not certain is not told
        ("import torch\ndef f(torch):\n  torch.foo()", []),
        ("import torch\nx = torch.ones(1)\nx = g(x)\nx.foo()", []),
        ("import torch\ntry:\n  torch.foo\nexcept AttributeError:\n  pass", []),
        ("import torch\nif hasattr(torch, 'foo'):\n  torch.foo", []),
        ("import torch\nif torch.cuda.is_available() and a:\n  torch.cuda.foo()", []),
        ("class torch: pass\ntorch.foo", []),
    ],
)
def test_uses(text, absent):
    assert missing(text) == absent


def test_names_that_are_given_raise_where_they_are_used():
    assert found("torch.float8_e4m3fn") is not found("torch.float32")
    given = importlib.import_module("weft.as_torch.supplied.absent").absent("torch.jit.load")
    assert not isinstance(1, given)
    with pytest.raises(NotImplementedError, match=r"torch\.jit\.load: Weft has none"):
        given("x")
    with pytest.raises(AttributeError, match=r"torch\.jit\.load\.foo: Weft has none"):
        _ = given.foo
