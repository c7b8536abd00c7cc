"""The optimizers: defaults, slots, and one rule each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import weft.tf1 as tf
from weft import ops
from weft.errors import ArgumentError
from weft.ops.optimizer.adam import momentum_product
from weft.tf1.framework.graph import fail
from weft.tf1.keras.optimizers.optimizer import Optimizer, WrappedOptimizer
from weft.tf1.keras.storage.serialization import found, serialize
from weft.tf1.train.optimizer import Optimizer as Base

__all__ = [
    "SGD", "Adadelta", "Adagrad", "Adam", "Adamax", "Nadam", "RMSprop", "deserialize", "get",
    "serialize",
]  # fmt: skip


class SGD(Optimizer):
    """Gradient descent, with momentum, and Nesterov's look ahead."""

    lazy = True

    def __init__(
        self, learning_rate: Any = 0.01, momentum: float = 0.0, nesterov: bool = False,
        name: str = "SGD", **options: Any,
    ) -> None:  # fmt: skip
        if not callable(momentum) and not 0 <= momentum <= 1:
            raise fail(ArgumentError, f"SGD: expected momentum from 0 to 1, got {momentum}")
        rates = {"learning_rate": learning_rate, "momentum": momentum}
        super().__init__(name, rates, **options)
        self._fixed = {"nesterov": nesterov}
        self.slots = ("momentum",) if momentum else ()

    def numbers(self, rate: Any, step: Any) -> list[Any]:
        """The learning rate, and the momentum."""
        return [rate, self.held("momentum").value()] if self.slots else [rate]

    def rule(self, step: Any) -> Any:
        """The update."""
        nesterov = self._fixed["nesterov"]

        def plain(g: Any, w: Any, rate: Any) -> Sequence[Any]:
            return (w - rate * g,)

        def moving(g: Any, w: Any, v: Any, rate: Any, momentum: Any) -> Sequence[Any]:
            v = v * momentum - rate * g
            return w + (v * momentum - rate * g if nesterov else v), v

        return moving if self.slots else plain


class RMSprop(Optimizer):
    """Gradients divided by the root of a running mean of their squares."""

    def __init__(
        self, learning_rate: Any = 0.001, rho: float = 0.9, momentum: float = 0.0,
        epsilon: float | None = 1e-7, centered: bool = False, name: str = "RMSprop",
        **options: Any,
    ) -> None:  # fmt: skip
        rates = {"learning_rate": learning_rate, "rho": rho, "momentum": momentum}
        super().__init__(name, rates, **options)
        self._fixed = {"epsilon": _epsilon(epsilon), "centered": centered}
        self.slots = ("rms", *(("mg",) if centered else ()), *(("momentum",) if momentum else ()))

    def numbers(self, rate: Any, step: Any) -> list[Any]:
        """Learning rate, rho, momentum."""
        return [rate, self.held("rho").value(), self.held("momentum").value()]

    def rule(self, step: Any) -> Any:
        """The update."""
        epsilon, centered = self._fixed["epsilon"], self._fixed["centered"]
        moves = "momentum" in self.slots

        def update(g: Any, w: Any, rms: Any, *rest: Any) -> Sequence[Any]:
            *held, rate, rho, momentum = rest
            rms = rms * rho + ops.square(g) * (1.0 - rho)
            spread, new = rms, [rms]
            if centered:
                mean = held[0] * rho + g * (1.0 - rho)
                spread, new = rms - ops.square(mean), [rms, mean]
            if not moves:
                return w - rate * g / (ops.sqrt(spread) + epsilon), *new
            speed = held[-1] * momentum + rate * g / ops.sqrt(spread + epsilon)
            return w - speed, *new, speed

        return update


class Adagrad(Optimizer):
    """Gradients divided by the root of the sum of all their squares."""

    slots = ("accumulator",)

    def __init__(
        self, learning_rate: Any = 0.001, initial_accumulator_value: float = 0.1,
        epsilon: float | None = 1e-7, name: str = "Adagrad", **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(name, {"learning_rate": learning_rate}, **options)
        self._fixed = {
            "initial_accumulator_value": initial_accumulator_value, "epsilon": _epsilon(epsilon),
        }  # fmt: skip

    def first_value(self, slot: str) -> Any:
        """The initial sum."""
        return tf.constant_initializer(self._fixed["initial_accumulator_value"])

    def numbers(self, rate: Any, step: Any) -> list[Any]:
        """The learning rate."""
        return [rate]

    def rule(self, step: Any) -> Any:
        """The update."""
        epsilon = self._fixed["epsilon"]

        def update(g: Any, w: Any, total: Any, rate: Any) -> Sequence[Any]:
            total = total + ops.square(g)
            return w - rate * g / (ops.sqrt(total) + epsilon), total

        return update


class Adadelta(Optimizer):
    """Zeiler (2012): steps scaled by the root of the mean of earlier steps' squares."""

    slots = ("accum_grad", "accum_var")

    def __init__(
        self, learning_rate: Any = 0.001, rho: float = 0.95, epsilon: float | None = 1e-7,
        name: str = "Adadelta", **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(name, {"learning_rate": learning_rate, "rho": rho}, **options)
        self._fixed = {"epsilon": _epsilon(epsilon)}

    def numbers(self, rate: Any, step: Any) -> list[Any]:
        """Learning rate, rho."""
        return [rate, self.held("rho").value()]

    def rule(self, step: Any) -> Any:
        """The update."""
        epsilon = self._fixed["epsilon"]

        def update(g: Any, w: Any, a: Any, d: Any, rate: Any, rho: Any) -> Sequence[Any]:
            a = a * rho + ops.square(g) * (1.0 - rho)
            change = g * ops.sqrt(d + epsilon) / ops.sqrt(a + epsilon)
            return w - rate * change, a, d * rho + ops.square(change) * (1.0 - rho)

        return update


class _Moments(Optimizer):
    """The part that Adam and its variants share: two moments, and their decay rates."""

    slots = ("m", "v")

    def __init__(
        self, learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.999,
        epsilon: float | None = 1e-7, name: str = "", **options: Any,
    ) -> None:  # fmt: skip
        rates = {"learning_rate": learning_rate, "beta_1": beta_1, "beta_2": beta_2}
        super().__init__(name or type(self).__name__, rates, **options)
        self._fixed = {"epsilon": _epsilon(epsilon)}

    def _betas(self) -> tuple[Any, Any]:
        return self.held("beta_1").value(), self.held("beta_2").value()


class Adam(_Moments):
    """Kingma and Ba (2014); with `amsgrad`, Reddi et al. (2018)."""

    def __init__(
        self, learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.999,
        epsilon: float | None = 1e-7, amsgrad: bool = False, name: str = "Adam", **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, beta_1, beta_2, epsilon, name, **options)
        self._fixed["amsgrad"] = amsgrad
        self.slots = ("m", "v", "vhat") if amsgrad else ("m", "v")

    def numbers(self, rate: Any, step: Any) -> list[Any]:
        """The bias-corrected learning rate, and the betas."""
        b1, b2 = self._betas()
        return [rate * tf.sqrt(1.0 - tf.pow(b2, step)) / (1.0 - tf.pow(b1, step)), b1, b2]

    def rule(self, step: Any) -> Any:
        """The update."""
        epsilon = self._fixed["epsilon"]

        def update(g: Any, w: Any, m: Any, v: Any, *rest: Any) -> Sequence[Any]:
            *top, rate, b1, b2 = rest
            m = m * b1 + g * (1.0 - b1)
            v = v * b2 + ops.square(g) * (1.0 - b2)
            most = [ops.maximum(t, v) for t in top]
            return w - rate * m / (ops.sqrt([v, *most][-1]) + epsilon), m, v, *most

        return update


class Adamax(_Moments):
    """Adam with the maximum of gradients instead of their squares (Kingma and Ba, 2014)."""

    def numbers(self, rate: Any, step: Any) -> list[Any]:
        """The bias-corrected learning rate, and the betas."""
        b1, b2 = self._betas()
        return [rate / (1.0 - tf.pow(b1, step)), b1, b2]

    def rule(self, step: Any) -> Any:
        """The update."""
        epsilon = self._fixed["epsilon"]

        def update(g: Any, w: Any, m: Any, v: Any, rate: Any, b1: Any, b2: Any) -> Sequence[Any]:
            m = m * b1 + g * (1.0 - b1)
            v = ops.maximum(v * b2, ops.abs(g))
            return w - rate * m / (v + epsilon), m, v

        return update


class Nadam(_Moments):
    """Adam with Nesterov's momentum (Dozat, 2015), which grows along a schedule.

    Args:
        schedule_decay: how fast it grows.
    """

    def __init__(
        self, learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.999,
        epsilon: float | None = 1e-7, schedule_decay: float = 0.004, name: str = "Nadam",
        **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, beta_1, beta_2, epsilon, name, **options)
        self._fixed["schedule_decay"] = schedule_decay

    def _cache(self) -> Any:
        """The variable that holds the product of all momenta so far."""
        return self.held("momentum_cache", 1.0)

    @property
    def weights(self) -> list[Any]:
        """The variables: the count of updates, the product of momenta, then the slots."""
        count, *slots = super().weights
        return [count, self._cache(), *slots]

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Set the values of the variables; without the product, it follows from the count.

        Raises:
            ArgumentError: their number differs.
        """
        given = list(weights)
        if len(given) == len(super().weights):
            decay = self._fixed["schedule_decay"]
            given.insert(1, momentum_product(self._now("beta_1"), decay, int(given[0])))
        super().set_weights(given)

    def numbers(self, rate: Any, step: Any) -> list[Any]:
        """Learning rate, betas, and the schedule's values for this step."""
        b1, b2 = self._betas()
        speed = self._fixed["schedule_decay"]
        now, later = (b1 * (1.0 - 0.5 * tf.pow(0.96, speed * t)) for t in (step, step + 1.0))
        product = self._cache()
        so_far = product.value() * now
        self._schedule_update = product.assign(so_far)
        first = rate * (1.0 - now) / (1.0 - so_far)
        second = rate * later / (1.0 - so_far * later)
        return [first, second, b1, b2, 1.0 - tf.pow(b2, step)]

    def rule(self, step: Any) -> Any:
        """The update."""
        epsilon = self._fixed["epsilon"]

        def update(
            g: Any, w: Any, m: Any, v: Any, first: Any, second: Any, b1: Any, b2: Any, rest: Any
        ) -> Sequence[Any]:
            m = m * b1 + g * (1.0 - b1)
            v = v * b2 + ops.square(g) * (1.0 - b2)
            return w - (first * g + second * m) / (ops.sqrt(v / rest) + epsilon), m, v

        return update

    def _finish(self, update_ops: list[Any], name_scope: str) -> Any:
        return tf.group(*update_ops, self._schedule_update, name=name_scope)


def _epsilon(given: float | None) -> float:
    return 1e-7 if given is None else float(given)


_CLASSES: Final = (SGD, RMSprop, Adagrad, Adadelta, Adam, Adamax, Nadam)
NAMES: Final[dict[str, Any]] = {
    **{kind.__name__: kind for kind in _CLASSES},
    **{kind.__name__.lower(): kind for kind in _CLASSES},
}


def get(identifier: Any) -> Any:
    """An optimizer by name or configuration; one of `tf.train` is wrapped.

    Raises:
        UnknownKeyError: the name is unknown.
        ArgumentError: the argument is not an optimizer.
    """
    if isinstance(identifier, str):
        identifier = identifier if identifier in NAMES else identifier.lower()
    made = found("optimizer", NAMES, identifier)
    made = made() if isinstance(made, type) else made
    if isinstance(made, Optimizer | WrappedOptimizer):
        return made
    if isinstance(made, Base):
        return WrappedOptimizer(made)
    raise fail(ArgumentError, f"compile: expected an optimizer or its name, got {identifier!r}")


deserialize = get
