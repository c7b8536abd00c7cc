"""How the rows of a table are updated: the rules of `weft.ops.optimizer`, with their options."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Final

from weft.errors import ArgumentError
from weft.ir.node import Value
from weft.ops.optimizer.adam import adam, corrected
from weft.ops.optimizer.descent import sgd
from weft.ops.optimizer.proximal import ftrl
from weft.ops.optimizer.root import adagrad
from weft.ops.optimizer.rule import Update

__all__ = ["FTRL", "SGD", "Adagrad", "Adam", "RowOptimizer"]


@dataclass(frozen=True)
class RowOptimizer(abc.ABC):
    """A rule for rows, and its options.

    Args:
        lr: the learning rate.
    """

    lr: float = 0.01

    slots: ClassVar[tuple[str, ...]] = ()
    rates: ClassVar[tuple[str, ...]] = ("lr",)

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if name != "betas" and name != "power" and not value >= 0:
                raise ArgumentError.here(
                    f"{type(self).__name__}: expected {name} of at least 0, got {value}"
                )

    @abc.abstractmethod
    def rule(self, p: Value, g: Value, *slots: Value, **rates: Value) -> Update:
        """The new row and slots."""

    def numbers(self, step: int, lr: float) -> dict[str, float]:
        """The rates of an update, the table's `step`th."""
        return {"lr": lr}

    def beginnings(self) -> tuple[float, ...]:
        """The first content of each slot."""
        return (0.0,) * len(self.slots)

    @property
    def shape(self) -> tuple[Any, ...]:
        """What the rule's code depends on."""
        return (type(self).__name__, *self.beginnings())

    def record(self) -> dict[str, Any]:
        """The optimizer as plain values."""
        return {"name": type(self).__name__, **asdict(self)}


@dataclass(frozen=True)
class SGD(RowOptimizer):
    """row -= lr * g."""

    def rule(self, p: Value, g: Value, *slots: Value, **rates: Value) -> Update:
        """See `weft.ops.optimizer.descent.sgd`."""
        return sgd(p, g, *slots, lr=rates["lr"])


@dataclass(frozen=True)
class Adagrad(RowOptimizer):
    """row -= lr * g / (sqrt(sum of all g * g) + eps).

    Args:
        initial_accumulator_value: the sum before the first update.
        eps: added to the root.
    """

    initial_accumulator_value: float = 0.1
    eps: float = 1e-10

    slots = ("sum",)
    rates = ("lr", "eps")

    def rule(self, p: Value, g: Value, *slots: Value, **rates: Value) -> Update:
        """See `weft.ops.optimizer.root.adagrad`."""
        return adagrad(p, g, *slots, **rates)

    def numbers(self, step: int, lr: float) -> dict[str, float]:
        """The learning rate, and eps."""
        return {"lr": lr, "eps": self.eps}

    def beginnings(self) -> tuple[float, ...]:
        """The first sum."""
        return (self.initial_accumulator_value,)


@dataclass(frozen=True)
class Adam(RowOptimizer):
    """row -= lr * m / (sqrt(v) + eps), corrected for the updates that the table has had.

    A row's moments stay as they are in updates that do not touch it ("lazy Adam").

    Args:
        betas: the factors of the means of g and of g * g.
        eps: added to the root.
    """

    lr: float = 0.001
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8

    slots = ("m", "v")
    rates = ("lr", "power1", "power2", "rest1", "rest2", "eps")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ArgumentError.here(f"Adam: expected betas from 0 to below 1, got {self.betas}")

    def rule(self, p: Value, g: Value, *slots: Value, **rates: Value) -> Update:
        """See `weft.ops.optimizer.adam.adam`."""
        step = corrected(rates.pop("lr"), rates.pop("power1"), rates.pop("power2"))
        return adam(p, g, *slots, step=step, **rates)

    def numbers(self, step: int, lr: float) -> dict[str, float]:
        """The learning rate and the powers of the betas."""
        beta1, beta2 = self.betas
        return {
            "lr": lr, "power1": beta1**step, "power2": beta2**step,
            "rest1": 1 - beta1, "rest2": 1 - beta2, "eps": self.eps,
        }  # fmt: skip


@dataclass(frozen=True)
class FTRL(RowOptimizer):
    """Follow the regularized leader: sparse linear models, as for clicks.

    Args:
        l1: rows whose gradients add up to less are 0.
        l2: the strength of the quadratic term.
        initial_accumulator_value: the sum of g * g before the first update.
        power: how the learning rate falls with that sum; -0.5 by its root, 0 not at all.
        shrinkage: of an L2 penalty that only steps see.
    """

    l1: float = 0.0
    l2: float = 0.0
    initial_accumulator_value: float = 0.1
    power: float = -0.5
    shrinkage: float = 0.0

    slots = ("sum", "linear")
    rates = ("lr", "l1", "l2", "power", "shrinkage")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.power > 0:
            raise ArgumentError.here(f"FTRL: expected a power of at most 0, got {self.power}")

    def rule(self, p: Value, g: Value, *slots: Value, **rates: Value) -> Update:
        """See `weft.ops.optimizer.proximal.ftrl`."""
        return ftrl(p, g, *slots, **rates)

    def numbers(self, step: int, lr: float) -> dict[str, float]:
        """The learning rate, how it falls, and the strengths."""
        return {
            "lr": lr, "l1": self.l1, "l2": self.l2, "power": self.power,
            "shrinkage": self.shrinkage,
        }  # fmt: skip

    def beginnings(self) -> tuple[float, ...]:
        """The first sum, and no gradient yet."""
        return (self.initial_accumulator_value, 0.0)


_KINDS: Final = {kind.__name__: kind for kind in (SGD, Adagrad, Adam, FTRL)}


def optimizer_of(record: Mapping[str, Any]) -> RowOptimizer:
    """The optimizer that `RowOptimizer.record` tells."""
    options = {name: value for name, value in record.items() if name != "name"}
    if "betas" in options:
        options["betas"] = tuple(options["betas"])
    kind = _KINDS.get(str(record.get("name")))
    if kind is None:
        raise ArgumentError(
            f"optimizer of rows: expected one of {', '.join(_KINDS)}, got {record.get('name')!r}"
        )
    return kind(**options)
