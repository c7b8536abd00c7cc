"""Editors complete public names and show their signatures and documentation."""

import sys

import jedi
import pytest

from tools.imports import ROOT

PROJECT = jedi.Project(ROOT, sys_path=[str(ROOT), *sys.path], smart_sys_path=False)
IMPORTS = """
import weft as wf
import weft.distributed as dist
import weft.numpy as np
import weft.tf1 as tf
"""


@pytest.mark.parametrize(
    "name",
    [
        "wf.cumsum", "wf.relu_", "wf.conv2d", "wf.explain", "wf.float32", "wf.nn.Linear",
        "wf.nn.functional.gelu", "wf.func.vmap", "wf.optim.Adam", "wf.train.Trainer",
        "wf.scipy.special.gammaln", "tf.reduce_sum", "tf.math.exp", "tf.keras.layers.Dense",
        "tf.train.AdamOptimizer", "np.linspace", "dist.fsdp.fully_shard", "dist.all_reduce",
    ],
)  # fmt: skip
def test_names_are_completed(name):
    script = jedi.Script(IMPORTS + name[:-2], project=PROJECT)
    assert name.rpartition(".")[2] in [completion.name for completion in script.complete()]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("wf.cumsum(", "cumsum(x: Any, dim: Any="),
        ("wf.func.vmap(", "vmap(fun: Function, in_axes: Any=0"),
        ("wf.nn.functional.relu(", "relu(input: Any, inplace: bool=False) -> Any"),
        ("wf.nn.GLU(", "GLU(dim: int=-1)"),
        ("wf.nn.MaxPool2d(", "MaxPool2d(kernel_size: Any, stride: Any=None"),
        ("dist.fsdp.fully_shard(", "fully_shard(module"),
    ],
)
def test_signatures_and_documentation_are_shown(call, text):
    (signature,) = jedi.Script(IMPORTS + call, project=PROJECT).get_signatures()
    assert signature.to_string().startswith(text)
    assert signature.docstring(raw=True)


@pytest.mark.parametrize(
    ("call", "text"),
    [("tf.reduce_sum(", "input_tensor: Any, axis"), ("wf.fft.fft(", "input: Any, n")],
)
def test_arguments_of_functions_that_are_made_are_shown(call, text):
    (signature,) = jedi.Script(IMPORTS + call, project=PROJECT).get_signatures()
    assert f"({text}" in signature.to_string()
