"""The optimizers: defaults, slots, and one rule each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import weft.tf1 as tf
from weft.errors import ArgumentError
from weft.ops.optimizer.adam import adam, adamax, momentum_product, nadam
from weft.ops.optimizer.descent import sgd, velocity
from weft.ops.optimizer.root import adadelta, adagrad, rmsprop
from weft.tf1.framework.graph import fail
from weft.tf1.keras.optimizers.optimizer import Optimizer, WrappedOptimizer
from weft.tf1.keras.storage.serialization import deserialized, serialize
from weft.tf1.train.optimizer import Optimizer as Base
from weft.tf1.version import Behavior

__all__ = [
    "SGD", "Adadelta", "Adagrad", "Adam", "Adamax", "Nadam", "RMSprop", "deserialize", "get",
    "serialize",
]  # fmt: skip


class SGD(Optimizer):
    """Gradient descent, with momentum, and Nesterov's look ahead.

    Args:
        learning_rate: a number, or a `LearningRateSchedule`.
        momentum: the factor of the running sum of steps, from 0 to 1; 0 goes without one.
        nesterov: whether to look ahead.
    """

    lazy = True

    def __init__(
        self, learning_rate: Any = 0.01, momentum: float = 0.0, nesterov: bool = False,
        name: str = "SGD", **options: Any,
    ) -> None:  # fmt: skip
        if not callable(momentum) and not 0 <= momentum <= 1:
            raise fail(ArgumentError, f"SGD: expected momentum from 0 to 1, got {momentum}")
        rates = {"learning_rate": learning_rate, "momentum": momentum}
        super().__init__(name, rates, **options)
        self._fixed = self._options = {"nesterov": nesterov}
        self.slots = ("momentum",) if momentum else ()

    def numbers(self, rate: Any, step: Any) -> list[Any]:
        """The learning rate, and the momentum."""
        return [rate, self.held("momentum").value()] if self.slots else [rate]

    @staticmethod
    def _rule(g: Any, w: Any, *rest: Any, nesterov: bool) -> Sequence[Any]:
        if len(rest) == 1:
            return sgd(w, g, lr=rest[0]).values
        v, rate, momentum = rest
        return velocity(w, g, v, lr=rate, momentum=momentum, nesterov=nesterov).values


class RMSprop(Optimizer):
    """Gradients divided by the root of a running mean of their squares.

    Args:
        learning_rate: a number, or a `LearningRateSchedule`.
        rho: the factor of the running means.
        momentum: the factor of the running sum of steps; 0 goes without one.
        epsilon: added to the denominator, so that it is not 0; with momentum, and in TensorFlow 2,
            before the root is taken.
        centered: subtract the square of the gradients' running mean.
    """

    def __init__(
        self, learning_rate: Any = 0.001, rho: float = 0.9, momentum: float = 0.0,
        epsilon: float | None = 1e-7, centered: bool = False, name: str = "RMSprop",
        **options: Any,
    ) -> None:  # fmt: skip
        rates = {"learning_rate": learning_rate, "rho": rho, "momentum": momentum}
        super().__init__(name, rates, **options)
        self._fixed = self._options = {"epsilon": _epsilon(epsilon), "centered": centered}
        self.slots = ("rms", *(("mg",) if centered else ()), *(("momentum",) if momentum else ()))

    @staticmethod
    def _rule(g: Any, w: Any, *rest: Any, epsilon: float, centered: bool) -> Sequence[Any]:
        *slots, rate, rho, momentum = rest
        inside = Behavior.is_2 or len(slots) > 1 + centered  # with a running sum of steps
        return rmsprop(
            w, g, *slots, lr=rate, rest=1.0 - rho, alpha=rho, mean_alpha=rho, eps=epsilon,
            momentum=momentum, centered=centered, rate_first=True, inside=inside,
        ).values  # fmt: skip


class Adagrad(Optimizer):
    """Gradients divided by the root of the sum of all their squares.

    Args:
        learning_rate: a number, or a `LearningRateSchedule`.
        initial_accumulator_value: the sum before the first step.
        epsilon: added to the denominator, so that it is not 0.
    """

    slots = ("accumulator",)

    def __init__(
        self, learning_rate: Any = 0.001, initial_accumulator_value: float = 0.1,
        epsilon: float | None = 1e-7, name: str = "Adagrad", **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(name, {"learning_rate": learning_rate}, **options)
        self._options = {"epsilon": _epsilon(epsilon)}
        first = {"initial_accumulator_value": initial_accumulator_value}
        self._fixed = first | self._options

    def first_value(self, slot: str) -> Any:
        """The initial sum."""
        return tf.constant_initializer(self._fixed["initial_accumulator_value"])

    @staticmethod
    def _rule(g: Any, w: Any, total: Any, rate: Any, *, epsilon: float) -> Sequence[Any]:
        return adagrad(w, g, total, lr=rate, eps=epsilon, rate_first=True).values


class Adadelta(Optimizer):
    """Zeiler (2012): steps scaled by the root of the mean of earlier steps' squares.

    Args:
        learning_rate: a number, or a `LearningRateSchedule`.
        rho: the factor of the running means.
        epsilon: added to both means before their roots are taken.
    """

    slots = ("accum_grad", "accum_var")

    def __init__(
        self, learning_rate: Any = 0.001, rho: float = 0.95, epsilon: float | None = 1e-7,
        name: str = "Adadelta", **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(name, {"learning_rate": learning_rate, "rho": rho}, **options)
        self._fixed = self._options = {"epsilon": _epsilon(epsilon)}

    @staticmethod
    def _rule(
        g: Any, w: Any, a: Any, d: Any, rate: Any, rho: Any, *, epsilon: float
    ) -> Sequence[Any]:
        rates: dict[str, Any] = {"lr": rate, "rho": rho, "rest": 1.0 - rho, "eps": epsilon}
        return adadelta(w, g, a, d, **rates, gradient_first=True).values


class _Moments(Optimizer):
    """The part that Adam and its variants share: two moments, and their decay rates.

    Args:
        learning_rate: a number, or a `LearningRateSchedule`.
        beta_1, beta_2: the factors of the running means of the gradient and of its square.
        epsilon: added to the denominator, so that it is not 0.
    """

    slots = ("m", "v")

    def __init__(
        self, learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.999,
        epsilon: float | None = 1e-7, name: str = "", **options: Any,
    ) -> None:  # fmt: skip
        rates = {"learning_rate": learning_rate, "beta_1": beta_1, "beta_2": beta_2}
        super().__init__(name or type(self).__name__, rates, **options)
        self._options = {"epsilon": _epsilon(epsilon)}
        self._fixed = dict(self._options)

    def _betas(self) -> tuple[Any, Any]:
        return self.held("beta_1").value(), self.held("beta_2").value()


class Adam(_Moments):
    """Kingma and Ba (2014); with `amsgrad`, Reddi et al. (2018).

    Args:
        amsgrad: divide by the root of the largest second moment so far.
    """

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

    @staticmethod
    def _rule(g: Any, w: Any, *rest: Any, epsilon: float) -> Sequence[Any]:
        *slots, rate, b1, b2 = rest
        return adam(w, g, *slots, step=rate, **_means(b1, b2, epsilon)).values


class Adamax(_Moments):
    """Adam with the maximum of gradients instead of their squares (Kingma and Ba, 2014).

    Args:
        beta_2: the factor by which the maximum decays.
    """

    def numbers(self, rate: Any, step: Any) -> list[Any]:
        """The bias-corrected learning rate, and the betas."""
        b1, b2 = self._betas()
        return [rate / (1.0 - tf.pow(b1, step)), b1, b2]

    @staticmethod
    def _rule(
        g: Any, w: Any, m: Any, v: Any, rate: Any, b1: Any, b2: Any, *, epsilon: float
    ) -> Sequence[Any]:
        means = {n: x for n, x in _means(b1, b2, epsilon).items() if n != "rest2"}
        return adamax(w, g, m, v, step=rate, **means, eps_in_largest=False).values


class Nadam(_Moments):
    """Adam with Nesterov's momentum (Dozat, 2015), which grows along a schedule.

    Args:
        schedule_decay: how fast it grows: 0.004, and 1 in TensorFlow 2.
    """

    def __init__(
        self, learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.999,
        epsilon: float | None = 1e-7, schedule_decay: float | None = None, name: str = "Nadam",
        **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(learning_rate, beta_1, beta_2, epsilon, name, **options)
        usual = 1.0 if Behavior.is_2 else 0.004
        self._fixed["schedule_decay"] = usual if schedule_decay is None else schedule_decay

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

    @staticmethod
    def _rule(g: Any, w: Any, m: Any, v: Any, *rates: Any, epsilon: float) -> Sequence[Any]:
        now, ahead, b1, b2, rest = rates
        means = {"now": now, "ahead": ahead, "correction": rest, **_means(b1, b2, epsilon)}
        return nadam(w, g, m, v, **means, divides=True).values

    def _finish(self, update_ops: list[Any], name_scope: str) -> Any:
        return tf.group(*update_ops, self._schedule_update, name=name_scope)


def _means(b1: Any, b2: Any, eps: float) -> dict[str, Any]:
    """What the rules of moments take of the betas, and epsilon."""
    return {"beta1": b1, "rest1": 1.0 - b1, "beta2": b2, "rest2": 1.0 - b2, "eps": eps}


def _epsilon(given: float | None) -> float:
    return 1e-7 if given is None else float(given)


_CLASSES: Final = (SGD, RMSprop, Adagrad, Adadelta, Adam, Adamax, Nadam)
NAMES: Final[dict[str, Any]] = {
    **{kind.__name__: kind for kind in _CLASSES},
    **{kind.__name__.lower(): kind for kind in _CLASSES},
}


def get(identifier: Any) -> Any:
    """An optimizer by name or configuration; one of `tf.train` is wrapped.

    Args:
        identifier: a name, a configuration as `serialize` returns it, or an optimizer.

    Raises:
        UnknownKeyError: the name is unknown.
        ArgumentError: the argument is not an optimizer.
    """
    if isinstance(identifier, str):
        identifier = identifier if identifier in NAMES else identifier.lower()
    made = deserialized("optimizer", NAMES, identifier)
    made = made() if isinstance(made, type) else made
    if isinstance(made, Optimizer | WrappedOptimizer):
        return made
    if isinstance(made, Base):
        return WrappedOptimizer(made)
    raise fail(ArgumentError, f"compile: expected an optimizer or its name, got {identifier!r}")


deserialize = get
