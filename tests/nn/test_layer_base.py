"""Layers made from functions: constructor, attributes, printed form and documentation."""

from __future__ import annotations

import copy
import inspect
import pickle
from dataclasses import InitVar
from typing import Any

import pytest

import weft as wf
from weft import nn
from weft.documentation import arguments_of
from weft.errors import DTypeError
from weft.nn import functional as F
from weft.nn.layer.base import Layer, buffer, layer

WEIGHTS = ("weight", "bias")  # options of layers, tensors of functions
STATELESS = [c for c in vars(nn).values() if isinstance(c, type) and "_fields" in vars(c)]


def weighted(
    input: Any, target: Any, scale: float = 2.0, weight: Any = None, note: str = ""
) -> Any:
    """Scaled.

    Args:
        input, target: numbers.
        scale: the
            factor.
        weight: another.
    """
    assert note == ""
    return input * target * scale * (1 if weight is None else weight)


@layer(weighted)
class Weighted(Layer):
    """A layer.

    Raises:
        ValueError: never.
    """

    old: InitVar[bool | None] = None
    weight: Any = buffer(default=None)
    scale: float = 2.0
    _shown = "scale, weight="

    def __post_init__(self, old: bool | None) -> None:
        self.scale = 0.0 if old else self.scale


def test_a_layer_is_what_its_fields_and_its_function_say():
    assert (
        str(inspect.signature(Weighted.forward)) == "(self, input: 'Any', target: 'Any') -> 'Any'"
    )
    made = Weighted(weight=wf.tensor(3.0), scale=5.0)
    assert (made(1.0, 2.0).item(), repr(made)) == (30, "Weighted(5.0, weight=3.0)")
    assert (list(made.state_dict()), Weighted(True).scale) == (["weight"], 0)
    assert not hasattr(Weighted, "scale") and not hasattr(made, "old")
    scale = "    scale: the\n        factor.\n"
    about = f"Args:\n    weight: another.\n{scale}\nRaises:\n    ValueError: never."
    assert Weighted.__doc__ == f"A layer.\n\n{about}"
    for twin in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert (repr(twin), twin(1.0, 1.0).item()) == (repr(made), 15)


def test_a_subclass_of_a_user_keeps_its_annotations_to_itself():
    class Mine(nn.MaxPool1d):
        """Mine."""

        note: str = "n"

        def __init__(self) -> None:
            super().__init__(2, ceil_mode=True)

    made = Mine()
    assert (made.stride, made.ceil_mode, made.note, Mine.__doc__) == (2, True, "n", "Mine.")
    assert "note" not in repr(made)
    with pytest.raises(DTypeError, match=r"MaxPool1d.__init__\(\) missing .* 'kernel_size'"):
        nn.MaxPool1d()


def test_defaults_are_those_of_the_function():
    """Constructors are written so that type checkers read them; here they meet the functions."""
    assert len(STATELESS) > 80
    names = {
        n.replace("_", "").lower(): f for n, f in vars(F).items() if n in F.__all__ and n[-1] != "_"
    }
    pairs = {}
    for cls in STATELESS:
        name = cls.__name__.lower()
        function = names.get(name) or names.get(name.removesuffix("loss"))
        parameters = inspect.signature(function).parameters if function else {}
        for field, own in inspect.signature(cls).parameters.items():
            if field in parameters and field not in WEIGHTS:
                pairs[f"{cls.__name__}.{field}"] = (own.default, parameters[field].default)
    assert len(pairs) > 150
    assert [name for name, (own, theirs) in pairs.items() if own != theirs] == []


def test_arguments_are_described_once():
    @arguments_of(weighted)
    def other(input: Any, scale: float, own: int) -> None:
        """Other.

        Args:
            own: its own.
        """

    scale = "    scale: the\n        factor.\n"
    assert other.__doc__ == f"Other.\n\nArgs:\n    input: numbers.\n{scale}    own: its own."
