"""What a row of a table contains before its first update."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

from weft.errors import ArgumentError
from weft.ir.dtype import float32
from weft.ir.node import Value
from weft.ops.declaration import constant_of
from weft.ops.random.counter_based import SEED, random_normal, random_uniform, truncated_normal

__all__ = ["Constant", "FirstRow", "Normal", "TruncatedNormal", "Uniform"]


@dataclass(frozen=True)
class FirstRow:
    """The first content of rows. It depends on the id and the seed alone."""

    def number(self, counter: Value) -> Value:
        """One number of a row."""
        raise NotImplementedError

    def record(self) -> dict[str, Any]:
        """The same as plain values."""
        return {"name": type(self).__name__, **asdict(self)}


@dataclass(frozen=True)
class Constant(FirstRow):
    """The same number everywhere.

    Args:
        value: the number.
    """

    value: float = 0.0

    def number(self, counter: Value) -> Value:
        """The number."""
        return constant_of(self.value, float32)


@dataclass(frozen=True)
class Uniform(FirstRow):
    """Uniform numbers.

    Args:
        low, high: the bounds.
    """

    low: float = -0.05
    high: float = 0.05

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise ArgumentError.here(
                f"Uniform: expected low < high, got {self.low} and {self.high}"
            )

    def number(self, counter: Value) -> Value:
        """A uniform number."""
        return random_uniform(counter, SEED, (), float32, self.low, self.high)


@dataclass(frozen=True)
class Normal(FirstRow):
    """Normal numbers.

    Args:
        mean: their mean.
        std: their standard deviation.
    """

    mean: float = 0.0
    std: float = 0.01

    def number(self, counter: Value) -> Value:
        """A normal number."""
        return random_normal(counter, SEED, (), float32, self.mean, self.std)


@dataclass(frozen=True)
class TruncatedNormal(FirstRow):
    """Normal numbers within two standard deviations of their mean.

    Args:
        mean: their mean.
        std: the standard deviation before they are cut off.
    """

    mean: float = 0.0
    std: float = 0.01

    def number(self, counter: Value) -> Value:
        """A normal number."""
        return truncated_normal(counter, SEED, (), float32, self.mean, self.std)


_KINDS: Final = {kind.__name__: kind for kind in (Constant, Uniform, Normal, TruncatedNormal)}


def first_row_of(record: Any) -> FirstRow:
    """The content that `FirstRow.record` tells."""
    kind = _KINDS.get(str(record.get("name")))
    if kind is None:
        raise ArgumentError(
            f"first rows: expected one of {', '.join(_KINDS)}, got {record.get('name')!r}"
        )
    return kind(**{name: value for name, value in record.items() if name != "name"})
