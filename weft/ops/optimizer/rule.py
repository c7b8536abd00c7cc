"""What the update rules of optimizers share.

A rule is a pure function of graph values: `rule(p, g, *slots, **rates)` returns the new values of
the parameter and its slots. Front ends give the rates, in the parameter's type, and the options
with which a rule rounds as theirs does: PyTorch and TensorFlow write one formula in several ways.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from weft.ir.node import Value
from weft.ops.declaration import catalogue

Hyper = Mapping[str, Value]


class Update(NamedTuple):
    """The result of a rule: the parameter's new value and its new state."""

    p: Value
    slots: tuple[Value, ...]

    @property
    def values(self) -> tuple[Value, ...]:
        """All of them, the parameter's first."""
        return (self.p, *self.slots)


Rule = Callable[..., Update]


def averaged(mean: Any, x: Any, rest: Any, keep: Any = None) -> Any:
    """The running mean after `x`, which counts as `rest` of it; of graph values or of tensors.

    Args:
        keep: 1 - rest; with it the sum is mean * keep + x * rest, else mean + (x - mean) * rest,
            which rounds differently.
    """
    return mean + (x - mean) * rest if keep is None else mean * keep + x * rest


def unbiased(mean: Value, rest: Value, count: Value) -> Value:
    """A running mean that began with 0, without the part of that 0.

    Args:
        rest: the part of a new value.
        count: how many there were.
    """
    return mean / (1.0 - catalogue.power(1.0 - rest, count))


def over_root(
    x: Value, square: Value, eps: Value | float | None = None, *, inside: bool = False,
    reciprocal: bool = False,
) -> Value:  # fmt: skip
    """x / (sqrt(square) + eps).

    Args:
        inside: eps is added before the root is taken: x / sqrt(square + eps).
        reciprocal: multiply by the reciprocal root, as TensorFlow's kernels do.
    """
    if inside and eps is not None:
        square, eps = square + eps, None
    if reciprocal:
        return x * catalogue.rsqrt(square)
    root = catalogue.sqrt(square)
    return x / (root if eps is None else root + eps)


def begun(rule: Rule) -> Rule:
    """A rule after what PyTorch's optimizers begin with: the gradient's sign and weight decay.

    The result takes the rates as `hyper`. Its `decay_factor` is what part of p is added to the
    gradient where there is `decay`; where that is `decoupled`, it is the factor that shrinks p.
    """

    def whole(
        p: Value, g: Value, *slots: Value, hyper: Hyper, decay: bool = False,
        decoupled: bool = False, maximize: bool = False, **flags: bool,
    ) -> Update:  # fmt: skip
        rates = dict(hyper)
        factor = rates.pop("decay_factor", None)
        if maximize:
            g = -g
        if decay and factor is not None:
            p, g = (p * factor, g) if decoupled else (p, g + p * factor)
        return rule(p, g, *slots, **rates, **flags)

    return whole
