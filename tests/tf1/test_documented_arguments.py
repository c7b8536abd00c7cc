"""Every argument of every layer, cell and callback is in its docstring's `Args:` section."""

import inspect

import pytest

import weft.tf1 as tf
from weft.tf1.framework.documentation import arguments_in, documented

FACES = {
    "tf.layers": tf.layers,
    "tf.nn.rnn_cell": tf.nn.rnn_cell,
    "tf.keras": tf.keras,
    "tf.keras.layers": tf.keras.layers,
    "tf.keras.callbacks": tf.keras.callbacks,
    "tf.keras.constraints": tf.keras.constraints,
    "tf.keras.models": tf.keras.models,
    "tf.keras.regularizers": tf.keras.regularizers,
}


def undocumented(thing):
    names = [n for n in inspect.signature(thing).parameters if not n.startswith("_")]
    return sorted({*names} - {*arguments_in(inspect.getdoc(thing))})


@pytest.mark.parametrize("face", FACES)
def test_every_argument_is_documented(face):
    public = {n: getattr(FACES[face], n) for n in FACES[face].__all__}
    left = {n: undocumented(thing) for n, thing in public.items() if callable(thing)}
    assert {n: names for n, names in left.items() if names} == {}
    assert [n for n, thing in public.items() if not inspect.getdoc(thing)] == []


def test_an_undocumented_argument_is_found():
    def layer(units, rate):
        """A layer.

        Args:
            units: of the state.
        """

    assert undocumented(layer) == ["rate"]


def test_a_layer_takes_documentation_from_its_bases_and_keeps_its_own_sections():
    text = "Adds.\n\nArgs:\n    x: a\n        term.\n\nRaises:\n    Error: no.\n\n>>> 1\n1"
    known = {**arguments_in(text), "name": "its name."}
    assert documented(text, ["x", "name"], known) == (
        "Adds.\n\nArgs:\n    x: a term.\n    name: its name.\n\nRaises:\n    Error: no.\n\n>>> 1\n1"
    )
    assert "kernel_initializer, bias_initializer: " in tf.layers.conv2d.__doc__
    assert "return_sequences: " in tf.keras.layers.LSTM.__doc__
    assert "filters: " not in tf.keras.layers.DepthwiseConv2D.__doc__
