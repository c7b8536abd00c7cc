"""Methods that fill a tensor with random numbers or draw from it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from weft.eager.functions.random.distribution import (
    bernoulli,
    bernoulli_node,
    multinomial,
    probability,
)
from weft.eager.functions.random.generator import (
    Generator,
    floating_kind,
    integers_node,
    next_counter,
    normal_node,
    randn,
    scalar,
    uniform_node,
)  # fmt: skip
from weft.eager.tensor.dispatch import cast, recorded
from weft.eager.tensor.dtype.dtype_info import finfo
from weft.eager.tensor.handle import Handle
from weft.eager.tensor.view.inplace import write
from weft.errors import ShapeError
from weft.ir.dtype import DType, float32
from weft.ir.shape import known
from weft.ops.random import distribution as draws
from weft.ops.warning import warn

if TYPE_CHECKING:
    from weft.eager.tensor.tensor import Tensor


_exponential = recorded(draws.exponential, differentiable=False)
_cauchy = recorded(draws.cauchy, differentiable=False)
_log_normal = recorded(draws.log_normal, differentiable=False)
_geometric = recorded(draws.geometric, differentiable=False)


def check_positive(name: str, **given: float) -> None:
    """Refuse a number that is not above 0.

    Raises:
        ShapeError: names it.
    """
    for what, value in given.items():
        if not value > 0:
            raise ShapeError.here(f"{name}: expected {what} > 0, got {value}")


class Methods(Handle):
    """Methods that fill a tensor with random numbers."""

    def _shape(self) -> tuple[int, ...]:
        return known(self.lazy.type.shape)

    def uniform_(
        self, low: float = 0.0, high: float = 1.0, *, generator: Generator | None = None
    ) -> Self:
        """Fill with uniform numbers in [low, high).

        Raises:
            ShapeError: `high` is below `low`, or their difference overflows the dtype.
        """
        kind = floating_kind(self.lazy.type.dtype, "uniform_")
        if not 0 <= high - low <= float(finfo(kind).max):
            text = f"uniform_: expected low <= high, no further apart than {kind} holds"
            raise ShapeError.here(f"{text}, got {low}, {high}")
        ends = (scalar(low, kind), scalar(high, kind))
        static = {"shape": self._shape(), "dtype": kind}
        return write(
            self, uniform_node.record((next_counter(generator), *ends), static)[0], "uniform_"
        )

    def normal_(
        self, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None
    ) -> Self:
        """Fill with normal numbers with this mean and standard deviation.

        Complex numbers have half of the variance in each part.
        """
        if not std >= 0:
            raise ShapeError.here(f"normal_: expected std >= 0, got {std}")
        kind = self.lazy.type.dtype
        if kind.is_complex:
            drawn: Any = randn(self._shape(), generator=generator, dtype=kind)
            return write(self, (drawn * std + mean).lazy, "normal_")
        kind = floating_kind(kind, "normal_")
        moments = (scalar(mean, kind), scalar(std, kind))
        static = {"shape": self._shape(), "dtype": kind}
        found = normal_node.record((next_counter(generator), *moments), static)
        return write(self, found[0], "normal_")

    def bernoulli_(self, p: Any = 0.5, *, generator: Generator | None = None) -> Self:
        """Fill with ones, with probability `p` (a number or a tensor), and zeros."""
        check = isinstance(p, Handle)
        chance = p if check else probability(p, "bernoulli_")
        static = {"shape": self._shape(), "dtype": self.lazy.type.dtype, "check": check}
        found = bernoulli_node.record((next_counter(generator), chance), static)
        return write(self, found[0], "bernoulli_")

    def exponential_(self, lambd: float = 1.0, *, generator: Generator | None = None) -> Self:
        """Fill with exponentially distributed numbers of rate `lambd`."""
        check_positive("exponential_", lambd=lambd)
        return self._drawn("exponential_", _exponential, (lambd,), generator)

    def cauchy_(
        self, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None
    ) -> Self:
        """Fill from a Cauchy distribution with this median and half width."""
        check_positive("cauchy_", sigma=sigma)
        return self._drawn("cauchy_", _cauchy, (median, sigma), generator)

    def log_normal_(
        self, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None
    ) -> Self:
        """Fill with log-normal numbers; mean and standard deviation are those of the logarithm."""
        check_positive("log_normal_", std=std)
        return self._drawn("log_normal_", _log_normal, (mean, std), generator)

    def geometric_(self, p: float, *, generator: Generator | None = None) -> Self:
        """Fill with geometric numbers: the trials with probability `p` until one succeeds."""
        if not 0 < p < 1:
            raise ShapeError.here(f"geometric_: expected 0 < p < 1, got {p}")
        return self._drawn("geometric_", _geometric, (p,), generator, to_integers=True)

    def _drawn(
        self, name: str, function: Any, numbers: tuple[float, ...], generator: Generator | None,
        to_integers: bool = False,
    ) -> Self:  # fmt: skip
        """Fill with what a function draws, in float32 for half precision."""
        own = self.lazy.type.dtype
        if not (to_integers and own.is_integer):
            floating_kind(own, name)
        kind = own if own.is_floating and own.size >= 4 else float32
        given = [scalar(x, kind) for x in numbers]
        static = {"shape": self._shape(), "dtype": kind}
        found = function.record((next_counter(generator), *given), static)[0]
        return write(self, cast(found, own), name)

    def random_(self, *bounds: int | None, generator: Generator | None = None) -> Self:
        """Fill with uniform integers in [`low` (0), `high`), by default up to what the dtype can
        hold.

        Called as `random_(high)` or `random_(low, high)`, where `high` may be `None`.

        Raises:
            ShapeError: the range is empty, or the dtype cannot hold it.
        """
        kind = self.lazy.type.dtype
        most = _largest(kind)
        first, last = bounds if len(bounds) == 2 else (0, *bounds, None)[:2]
        low, high = int(first or 0), most + 1 if last is None else int(last)
        least = 0 if kind.kind in "bu" else -most - 1 if kind.is_integer else -math.inf
        within = kind.is_floating or least <= low <= high <= most + 1
        if not low < high or not within:
            raise ShapeError.here(
                f"random_: expected low < high, within what {kind} holds, got {low}, {high}"
            )
        if kind.is_floating and max(abs(low), abs(high - 1)) > most:
            text = f"random_: not all integers from {low} to {high - 1} are numbers of {kind}"
            warn(text)
        static = {"shape": self._shape(), "low": int(low), "high": int(high), "dtype": kind}
        return write(self, integers_node.record((next_counter(generator),), static)[0], "random_")

    def bernoulli(self, p: float | None = None, *, generator: Generator | None = None) -> Tensor:
        """Ones with these probabilities, otherwise zeros."""
        return bernoulli(self, p, generator=generator)

    def multinomial(
        self, num_samples: int, replacement: bool = False, *,
        generator: Generator | None = None,
    ) -> Tensor:  # fmt: skip
        """Draw indices, each with a probability proportional to its weight."""
        return multinomial(self, num_samples, replacement, generator=generator)


def _largest(dtype: DType) -> int:
    """The largest integer up to which the dtype holds all integers."""
    if dtype.kind == "b":
        return 1
    if dtype.is_integer:
        return int(np.iinfo(dtype.numpy).max)
    digits = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}
    return 1 << digits[dtype.name]
