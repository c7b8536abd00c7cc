"""TensorFlow 1's shapes: `TensorShape`, a sequence of `Dimension`s, which may be unknown."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from weft.documentation import Reads
from weft.errors import ShapeError
from weft.ir.shape import Shape
from weft.tf1.version import Behavior

__all__ = ["Dimension", "TensorShape"]


def _arithmetic(function: Callable[[int, int], int]):
    """An operator of dimensions: unknown if one of them is."""

    def operation(self: Dimension, other: Any) -> Dimension:
        a, b = self.value, Dimension(other).value
        return Dimension(None if a is None or b is None else function(a, b))

    return operation


def _comparison(function: Callable[[int, int], bool]) -> Any:
    """A comparison of dimensions: `None` if one of them is unknown."""

    def compare(self: Dimension, other: Any) -> bool | None:
        try:
            a, b = self.value, Dimension(other).value
        except (TypeError, ValueError):
            return NotImplemented
        return None if a is None or b is None else function(a, b)

    return compare


class Dimension:
    """One dimension; an unknown one has the `value` `None`. Arithmetic with unknowns is unknown."""

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value: int | None = value.value if isinstance(value, Dimension) else _index(value)

    value = Reads[int | None]("_value", "The size, or `None`.")

    def is_compatible_with(self, other: Any) -> bool:
        """Whether the two may be equal."""
        other = Dimension(other)
        return self._value is None or other.value is None or self._value == other.value

    def assert_is_compatible_with(self, other: Any) -> None:
        """Check `is_compatible_with`.

        Raises:
            ShapeError: the two differ.
        """
        if not self.is_compatible_with(other):
            raise ShapeError(f"dimension: expected {self}, got {other}")

    def merge_with(self, other: Any) -> Dimension:
        """The two combined: known if either is."""
        self.assert_is_compatible_with(other)
        return Dimension(other) if self._value is None else self

    __add__ = __radd__ = _arithmetic(operator.add)
    __mul__ = __rmul__ = _arithmetic(operator.mul)
    __sub__, __rsub__ = _arithmetic(operator.sub), _arithmetic(lambda a, b: b - a)
    __floordiv__, __mod__ = _arithmetic(operator.floordiv), _arithmetic(operator.mod)
    __eq__, __ne__ = _comparison(operator.eq), _comparison(operator.ne)
    __lt__, __le__ = _comparison(operator.lt), _comparison(operator.le)
    __gt__, __ge__ = _comparison(operator.gt), _comparison(operator.ge)

    def __hash__(self) -> int:
        return hash(self._value)

    def __int__(self) -> int:
        return self.__index__()

    def __index__(self) -> int:
        if self._value is None:
            raise TypeError("dimension: expected a known size, got ?")
        return self._value

    def __bool__(self) -> bool:
        return bool(self._value)

    def __repr__(self) -> str:
        return f"Dimension({self._value!r})"

    def __str__(self) -> str:
        return "?" if self._value is None else str(self._value)


def _index(value: Any) -> int | None:
    if value is None:
        return None
    if hasattr(value, "__index__"):
        size = value.__index__()
    elif isinstance(value, float) and value.is_integer():
        size = int(value)
    else:
        raise TypeError(f"dimension: expected an integer or None, got {value!r}")
    if size < 0:
        raise ShapeError(f"dimension: expected a size >= 0, got {size}")
    return size


class TensorShape:
    """A partial shape: an unknown rank, or dimensions some of which may be unknown."""

    __slots__ = ("_dims",)

    def __init__(self, dims: Any) -> None:
        self._dims: Shape = _dims(dims)

    @property
    def dims(self) -> list[Dimension] | None:
        """The dimensions, or `None` for an unknown rank."""
        return None if self._dims is None else [Dimension(d) for d in self._dims]

    @property
    def ndims(self) -> int | None:
        """The rank, or `None`."""
        return None if self._dims is None else len(self._dims)

    rank = ndims

    def as_list(self) -> list[int | None]:
        """The sizes, `None` where unknown.

        Raises:
            ShapeError: the rank is unknown.
        """
        if self._dims is None:
            raise ShapeError("as_list() is not defined on an unknown TensorShape")
        return list(self._dims)

    def as_dims(self) -> Shape:
        """The shape in the form of Weft's graph."""
        return self._dims

    def num_elements(self) -> int | None:
        """The number of elements, or `None` if unknown."""
        if self._dims is None:
            return None
        total = 1
        for size in self._dims:
            if size is None:
                return None
            total *= size
        return total

    def is_fully_defined(self) -> bool:
        """Whether every dimension is known."""
        return self._dims is not None and None not in self._dims

    def assert_is_fully_defined(self) -> None:
        """Check `is_fully_defined`.

        Raises:
            ShapeError: a dimension is unknown.
        """
        if not self.is_fully_defined():
            raise ShapeError(f"shape: expected a fully defined shape, got {self}")

    def is_compatible_with(self, other: Any) -> bool:
        """Whether a concrete shape can match both."""
        other = as_shape(other)
        if self._dims is None or other.as_dims() is None:
            return True
        return len(self._dims) == len(other.as_dims()) and all(
            a is None or b is None or a == b
            for a, b in zip(self._dims, other.as_dims(), strict=True)
        )

    def assert_is_compatible_with(self, other: Any) -> None:
        """Check `is_compatible_with`.

        Raises:
            ShapeError: the two contradict each other.
        """
        if not self.is_compatible_with(other):
            raise ShapeError(f"shape: expected {self}, got {as_shape(other)}")

    def assert_has_rank(self, rank: int) -> None:
        """Check the rank, if known.

        Raises:
            ShapeError: the rank differs.
        """
        if self._dims is not None and len(self._dims) != rank:
            raise ShapeError(f"shape: expected rank {rank}, got {self}")

    def with_rank(self, rank: int) -> TensorShape:
        """The shape, refined to rank `rank`."""
        self.assert_has_rank(rank)
        return TensorShape([None] * rank) if self._dims is None else self

    def with_rank_at_least(self, rank: int) -> TensorShape:
        """The shape, checked to have at least rank `rank`."""
        if self._dims is not None and len(self._dims) < rank:
            raise ShapeError(f"shape: expected rank >= {rank}, got {self}")
        return self

    def merge_with(self, other: Any) -> TensorShape:
        """The two combined, with everything that either knows.

        Raises:
            ShapeError: the two contradict each other.
        """
        self.assert_is_compatible_with(other)
        other = as_shape(other)
        if self._dims is None or other.as_dims() is None:
            return other if self._dims is None else self
        pairs = zip(self._dims, other.as_dims(), strict=True)
        return TensorShape([b if a is None else a for a, b in pairs])

    def concatenate(self, other: Any) -> TensorShape:
        """The dimensions of this shape followed by those of `other`."""
        other = as_shape(other)
        if self._dims is None or other.as_dims() is None:
            return TensorShape(None)
        return TensorShape((*self._dims, *other.as_dims()))

    def __len__(self) -> int:
        if self._dims is None:
            raise ShapeError("shape: expected a known rank, got <unknown>")
        return len(self._dims)

    def __bool__(self) -> bool:
        return self._dims is not None

    def __iter__(self) -> Iterator[Any]:
        if self._dims is None:
            raise ShapeError("shape: expected a known rank, got <unknown>")
        return iter([_shown(d) for d in self._dims])

    def __getitem__(self, key: int | slice) -> Any:
        if self._dims is None:
            return TensorShape(None) if isinstance(key, slice) else _shown(None)
        if isinstance(key, slice):
            return TensorShape(self._dims[key])
        return _shown(self._dims[key])

    def __eq__(self, other: object) -> bool:
        try:
            return self._dims == as_shape(other).as_dims()
        except (TypeError, ValueError):
            return NotImplemented

    def __hash__(self) -> int:
        return hash(self._dims)

    def __repr__(self) -> str:
        if self._dims is None:
            return "TensorShape(None)"
        if Behavior.is_2:
            return f"TensorShape({list(self._dims)})"
        return f"TensorShape([{', '.join(repr(Dimension(d)) for d in self._dims)}])"

    def __str__(self) -> str:
        if self._dims is None:
            return "<unknown>"
        unknown = "None" if Behavior.is_2 else "?"
        inner = ", ".join(unknown if d is None else str(d) for d in self._dims)
        return f"({inner},)" if len(self._dims) == 1 else f"({inner})"


def _shown(size: int | None) -> Any:
    """A dimension as programs see it: a `Dimension`, or in TensorFlow 2 the number itself."""
    return size if Behavior.is_2 else Dimension(size)


def _dims(dims: Any) -> Shape:
    if dims is None:
        return None
    if isinstance(dims, TensorShape):
        return dims.as_dims()
    if isinstance(dims, Iterable):
        return tuple(Dimension(d).value for d in dims)
    return (Dimension(dims).value,)


def as_shape(shape: Any) -> TensorShape:
    """`shape` as a `TensorShape`; an integer is one dimension, `None` an unknown rank."""
    return shape if isinstance(shape, TensorShape) else TensorShape(shape)


def unknown_shape(ndims: int | None = None) -> TensorShape:
    """A shape of `ndims` unknown dimensions, or of unknown rank."""
    return TensorShape(None if ndims is None else [None] * ndims)


def dimension_value(dimension: Any) -> int | None:
    """The size of a `Dimension`, an integer or `None`."""
    return dimension.value if isinstance(dimension, Dimension) else dimension
