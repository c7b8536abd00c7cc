"""Every argument of every public optimizer and schedule is documented; options are fields."""

import inspect
import re
from dataclasses import KW_ONLY

import pytest

import weft as wf
import weft.tf1 as tf
from weft import optim
from weft.errors import OptimizerError
from weft.optim.option import nonnegative, option
from weft.tf1 import keras

FACES = [
    optim, optim.lr_scheduler, optim.swa_utils, keras.optimizers, keras.optimizers.schedules,
]  # fmt: skip


OWN = ("weft.optim", "weft.tf1.keras.optimizers")


def public():
    """The classes and functions of optimization, by name."""
    for face in FACES:
        for name in getattr(face, "__all__", vars(face)):
            thing = getattr(face, name)
            if callable(thing) and thing.__module__.startswith(OWN):
                yield f"{face.__name__}.{name}", thing
    for name in dir(tf.train):
        if name.endswith(("Optimizer", "_decay", "MovingAverage")):
            yield f"tf.train.{name}", getattr(tf.train, name)


def undocumented(function):
    section = re.search(
        r"^Args:\n((?:    .*\n?|\n(?=    ))*)", inspect.getdoc(function) or "", re.M
    )
    lines = re.findall(r"^    (\w+(?:, \w+)*):", section[1], re.M) if section else []
    described = {name for line in lines for name in line.split(", ")}
    return [n for n in inspect.signature(function).parameters if n not in described]


def test_every_argument_is_documented():
    missing = {name: undocumented(thing) for name, thing in public()}
    assert len(missing) > 60
    assert {name: names for name, names in missing.items() if names} == {}


def test_an_argument_without_a_meaning_is_found():
    def f(lr, momentum, eps):
        """A function.

        Args:
            lr, eps: numbers.
                momentum: in a later line.
        """
        return lr, momentum, eps

    assert undocumented(f) == ["momentum"]


class Halving(optim.Optimizer):
    """p -= lr * g / 2 ** power"""

    lr: float = nonnegative(default=0.5)
    power: int = option(default=0)
    _: KW_ONLY
    note: str = option(default="", grouped=False)

    @staticmethod
    def rule(p, g, *, hyper):
        return optim.optimizer.Update(p - hyper["lr"] * g, ())

    def numbers(self, group, step):
        return {"lr": group["lr"] / 2 ** group["power"]}


class Quartering(Halving):
    power: int = option(default=2)


def test_a_constructor_is_made_from_fields():
    p = wf.ones(1, requires_grad=True)
    p.sum().backward()
    made = Quartering([{"params": [p], "lr": 2.0}], note="x")
    made.step()
    assert p.item() == 0.5
    assert made.defaults == {"lr": 0.5, "power": 2}
    assert str(inspect.signature(Quartering)).replace("'", "") == (
        "(params: Iterable[Any], lr: float = 0.5, power: int = 2, *, note: str = ) -> None"
    )
    assert not hasattr(Quartering, "lr")
    with pytest.raises(OptimizerError, match="Quartering: expected lr >= 0, got -1"):
        Quartering([p], -1)
    with pytest.raises(TypeError, match=r"Quartering.__init__\(\) takes from 2 to 4 positional"):
        Quartering([p], 1, 2, "x")
