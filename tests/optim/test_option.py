"""Options of optimizers are fields, from which constructors are made."""

import inspect
from dataclasses import KW_ONLY

import pytest

import weft as wf
from weft import optim
from weft.errors import OptimizerError
from weft.optim.option import nonnegative, option


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
