"""The tables of other libraries' names, and what is told of a program by its text."""

import ast
import importlib

import pytest

import weft as wf
from tools.compat.listing import read
from tools.compat.page import LACKING, TITLES, lacking, pages
from weft.errors import ArgumentError, ConfigError
from weft.mirror import table
from weft.mirror.mirror import found, has
from weft.mirror.supplied.flat import flatten_dense_tensors, unflatten_dense_tensors
from weft.mirror.tensorflow_version import version_for
from weft.mirror.uses import uses

OPTIONAL = ("tqdm",)
OF_TENSORFLOW = (  # names that its listing leaves out: not public, aliases, or by nobody's promise
    "tensorflow.compat", "tensorflow.contrib", "tensorflow.examples", "tensorflow.python",
    "tensorflow.keras.saving", "tensorflow.flags", "tensorflow.app.flags", "tensorflow._api",
    "keras", "tf_keras",
)  # fmt: skip


def test_every_row_leads_somewhere():
    for places in table.modules().values():
        for place in places:
            importlib.import_module(place)
    for place in table.names().values():
        module, _, name = place.partition(":")
        if not module.startswith(OPTIONAL):
            assert hasattr(importlib.import_module(module), name), place


def test_public_modules_are_those_of_the_library():
    listed = {name for library in TITLES
              for name in read(library)[1]}  # fmt: skip
    parts = {name for name in listed if name.rpartition(".")[2][:1].islower()}
    private = {
        name
        for name in table.modules()
        if "._" in name or name.startswith(("pytorch_", "lightning_", *OF_TENSORFLOW))
    }
    known = {name for name in table.modules() if name in parts}
    left_out = set(table.modules()) - known - private
    assert all(
        name.startswith(
            (
                # JAX's: modules that it has removed, and names of private ones in programs
                "jax.api",
                "jax.config",
                "jax.experimental.optimizers",
                "jax.experimental.stax",
                "jax.interpreters",
                "jax.lib",
                "jax.util",
                "jax.version",
                "jaxlib",
                "torch.fx",
                "torch.onnx",
                "torch.ops",
                "torch.library",
                "torch.mtia",
                "torch.testing",
                "torch.ao",
                "torch.export",
                "torch.testing",
                "tensorflow",
                "jax",
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
    assert LACKING.read_bytes() == lacking(), "run python -m tools.compat"


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
    given = importlib.import_module("weft.mirror.supplied.absent").absent("torch.jit.load")
    assert not isinstance(1, given)
    with pytest.raises(NotImplementedError, match=r"torch\.jit\.load: Weft has none"):
        given("x")
    with pytest.raises(AttributeError, match=r"torch\.jit\.load\.foo: Weft has none"):
        _ = given.foo


def test_an_operator_of_a_program_has_its_gradient():
    operators = importlib.import_module("weft.mirror.supplied.operators")
    square = operators.custom_op("mine::square", mutates_args=())(lambda x: x * x)
    x = wf.tensor([2.0], requires_grad=True)
    operators.mine.square(x).sum().backward()
    assert x.grad.tolist() == [4.0]
    operators.register_autograd(
        "mine::square", lambda ctx, g: 3 * g * ctx.saved_tensors[0],
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
    )  # fmt: skip
    x.grad = None
    square(x).sum().backward()
    assert x.grad.tolist() == [6.0]
    operators.register_autograd("compiled::op", abs)  # has no effect: there is no such operator
    with pytest.raises(AttributeError, match=r"torch\.ops\.mine\.cube: there is no such operator"):
        _ = operators.mine.cube


def test_nested_structures():
    tree = importlib.import_module("weft.mirror.supplied.pytree")

    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    tree.register_pytree_node(Pair, lambda p: ([p.a, p.b], None), lambda parts, _: Pair(*parts))
    found = tree.tree_map(lambda x, y: x + y, {"p": Pair(1, [2])}, {"p": Pair(10, [20])})
    assert (found["p"].a, found["p"].b) == (11, [22])
    leaves, spec = tree.tree_flatten([(1, None), {"a": 2}])
    assert leaves == [1, None, 2] and spec.num_leaves == 3
    assert tree.tree_unflatten("xyz", spec) == [("x", "y"), {"a": "z"}]


def test_data_parallel_on_one_device():
    net = wf.nn.Linear(2, 1)
    whole = wf.nn.DataParallel(net, device_ids=[0])
    x = wf.ones(3, 2)
    assert whole(x).tolist() == net(x).tolist() and whole.module is net
    assert sorted(whole.state_dict()) == ["module.bias", "module.weight"]
    with pytest.raises(ArgumentError, match=r"at most one device, got \[0, 1"):
        wf.nn.DataParallel(net, device_ids=[0, 1])
    with pytest.raises(ConfigError, match="expected 'cpu', the only device here, got 'cuda'"):
        wf.nn.DataParallel(net, device_ids=["cuda"])


def test_a_method_of_each_tensor():
    xs, ys = [wf.ones(1), wf.ones(2)], [wf.full((1,), 2.0), wf.full((2,), 4.0)]
    assert [x.tolist() for x in found("torch._foreach_add")(xs, ys)] == [[3.0], [5.0, 5.0]]
    assert found("torch._foreach_lerp_")(xs, ys, 0.5) is None
    assert [x.tolist() for x in xs] == [[1.5], [2.5, 2.5]]
    for place in [place for name, place in table.names().items() if "_foreach_" in name]:
        assert hasattr(wf.Tensor, place.partition(":")[2])


def test_a_choice_by_a_device_in_one_expression():
    text = "import torch\nx = torch.nosuch if torch.cuda.is_available() else torch.other\n"
    assert [use.missing for use in uses(ast.parse(text)) if use.missing] == [
        "torch.other: Weft has none"
    ]


def test_types_of_cuda_tensors_are_of_no_tensor():
    kind = found("torch.cuda.FloatTensor")
    assert not isinstance(wf.ones(1), kind) and kind.is_cuda and not wf.FloatTensor.is_cuda
    with pytest.raises(ConfigError, match=r"cuda\.FloatTensor: there is no CUDA device"):
        kind(2)


@pytest.mark.parametrize(
    "name",
    [
        "tensorflow.contrib.keras.api.keras.layers.Dense",
        "tensorflow.python.keras.engine.training.Model",
        "tensorflow.python.keras.layers.core.Dense",
        "tensorflow.python.keras.utils.generic_utils.Progbar",
        "tensorflow._api.v1.keras.models.Model",
        "tensorflow.keras.__version__",
    ],
)
def test_inner_names_of_keras_lead_to_the_public_ones(name):
    assert has(name)


def test_a_program_that_switches_eager_execution_off_is_for_version_2(tmp_path):
    script = tmp_path / "program.py"
    for text, version in (
        ("tf.compat.v1.disable_eager_execution()\ntf.keras.Model", 2),
        ("tf.compat.v1.placeholder('float32')", 1),
    ):
        script.write_text(f"import tensorflow as tf\n{text}\n")
        assert version_for(str(script), False) == version


def test_tensors_are_joined_and_taken_apart_again():
    tensors = [wf.ones(2, 3), wf.tensor(2.0), wf.zeros(0)]
    flat = flatten_dense_tensors(tensors)
    parts = unflatten_dense_tensors(flat * 2, tensors)
    assert flat.shape == (7,) and [p.tolist() for p in parts] == [[[2.0] * 3] * 2, 4.0, []]
