"""Constraints: where the parameters of a distribution and its values lie.

>>> import weft as wf
>>> wf.distributions.constraints.positive.check(wf.tensor([1.0, -1.0]))
tensor([ True, False])
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import weft.eager.functions.api as wf
from weft import linalg
from weft.errors import ArgumentError

__all__ = [
    "Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent",
    "dependent_property", "greater_than", "greater_than_eq", "half_open_interval", "independent",
    "integer_interval", "interval", "is_dependent", "less_than", "lower_cholesky",
    "lower_triangular", "multinomial", "nonnegative", "nonnegative_integer", "one_hot", "positive",
    "positive_definite", "positive_integer", "positive_semidefinite", "real", "real_vector",
    "simplex", "square", "stack", "symmetric", "unit_interval",
]  # fmt: skip


class Constraint:
    """A region in which values are valid.

    Attributes:
        is_discrete: whether it consists of single numbers.
        event_dim: how many of the last axes one value has.
        of_arrays: whether `check` computes with NumPy's arrays, too.
    """

    is_discrete: Any = False
    event_dim: Any = 0
    of_arrays: Any = False

    def check(self, value: Any) -> Any:
        """Whether each value is valid, of the shape without the last `event_dim` axes."""
        raise NotImplementedError

    def __repr__(self) -> str:
        given = [f"{k}={_shown(v)}" for k, v in vars(self).items() if k[0] != "_"]
        return f"{type(self).__name__}({', '.join(given)})"


def _shown(value: Any) -> Any:
    return f"<tensor of shape {tuple(value.shape)}>" if hasattr(value, "shape") else value


def kind(name: str, fields: str, check: Callable[..., Any], **more: Any) -> Any:
    """A class of constraints with these attributes, given to its constructor."""
    names = fields.split()

    def __init__(self: Any, *args: Any, **options: Any) -> None:
        vars(self).update(zip(names, args, strict=False), **options)
        if set(vars(self)) != set(names):
            raise TypeError(f"{name}: expected {', '.join(names)}")

    members = {"__doc__": f"See `{__name__}`.", "__module__": __name__, "of_arrays": True, **more}
    return type(name, (Constraint,), {**members, "__init__": __init__, "check": check})


# Constraints that depend on other values


class _Dependent(Constraint):
    def __init__(
        self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented
    ) -> None:
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def _known(self, name: str) -> Any:
        found = getattr(self, f"_{name}")
        if found is NotImplemented:
            raise NotImplementedError(f"{name} depends on other values")
        return found

    is_discrete: Any = property(lambda self: self._known("is_discrete"))
    event_dim: Any = property(lambda self: self._known("event_dim"))

    def __call__(self, **known: Any) -> _Dependent:
        before = {"is_discrete": self._is_discrete, "event_dim": self._event_dim}
        return _Dependent(**{**before, **known})

    def check(self, value: Any) -> Any:
        raise ArgumentError.here("check: what depends on other values cannot be checked")


class dependent_property(property, _Dependent):
    """A property that gives a constraint: dependent for the class, known for an instance."""

    def __init__(
        self, fn: Callable[[Any], Any] | None = None, *, is_discrete: Any = NotImplemented,
        event_dim: Any = NotImplemented,
    ) -> None:  # fmt: skip
        property.__init__(self, fn)
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def __call__(self, fn: Callable[[Any], Any]) -> Any:  # pyright: ignore
        """The property of this function."""
        known = {"is_discrete": self._is_discrete, "event_dim": self._event_dim}
        return dependent_property(fn, **known)


def is_dependent(constraint: Any) -> bool:
    """Whether a constraint depends on other values."""
    return isinstance(constraint, _Dependent)


# Constraints of constraints


class IndependentConstraint(Constraint):
    """A constraint of which some batch axes belong to one value."""

    base_constraint: Any
    is_discrete: Any = property(lambda self: self.base_constraint.is_discrete)
    of_arrays: Any = property(lambda self: self.base_constraint.of_arrays)
    event_dim: Any = property(lambda c: c.base_constraint.event_dim + c.reinterpreted_batch_ndims)

    def __init__(self, base_constraint: Any, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(str, vars(self).values()))})"

    def check(self, value: Any) -> Any:
        """Whether each value is valid."""
        return _all(self.base_constraint.check(value), self.reinterpreted_batch_ndims)


def _all(checked: Any, count: int) -> Any:
    """Whether all are valid along the last `count` axes."""
    rank = checked.ndim - count
    if rank < 0:
        raise ArgumentError.here(f"check: expected values with {count} axes or more")
    return checked.reshape((*checked.shape[:rank], -1)).all(-1)


class MixtureSameFamilyConstraint(IndependentConstraint):
    """Where the components of a mixture have their values."""

    event_dim: Any = property(lambda self: self.base_constraint.event_dim)

    def __init__(self, base_constraint: Any) -> None:
        self.base_constraint = base_constraint

    def check(self, value: Any) -> Any:
        """Whether each value is valid for all components."""
        rank = value.ndim - self.event_dim
        found = self.base_constraint.check(
            value.reshape((*value.shape[:rank], 1, *value.shape[rank:]))
        )
        return _all(found, found.ndim - rank)


class Stack(Constraint):
    """A constraint for each element along an axis."""

    def __init__(self, cseq: Iterable[Any], dim: int = 0) -> None:
        self.cseq, self.dim = list(cseq), dim

    is_discrete: Any = property(lambda self: any([c.is_discrete for c in self.cseq]))

    @property
    def event_dim(self) -> Any:
        """The axes of one value, with the stacked one if it is among them."""
        rank = max([c.event_dim for c in self.cseq])
        return rank + 1 if self.dim + rank < 0 else rank

    def check(self, value: Any) -> Any:
        """Whether each value is valid."""
        pairs = zip(self.cseq, value.unbind(self.dim), strict=True)
        return wf.stack([c.check(v) for c, v in pairs], self.dim)


class Cat(Stack):
    """A constraint for each of adjacent parts along an axis."""

    event_dim: Any = property(lambda self: max([c.event_dim for c in self.cseq]))

    def __init__(
        self, cseq: Iterable[Any], dim: int = 0, lengths: Sequence[int] | None = None
    ) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)

    def check(self, value: Any) -> Any:
        """Whether each value is valid."""
        pairs = zip(self.cseq, wf.split(value, self.lengths, self.dim), strict=True)
        return wf.cat([c.check(v) for c, v in pairs], self.dim)


# Numbers


def _whole(value: Any) -> Any:
    return value % 1 == 0


dependent: Final = _Dependent()
independent: Final = IndependentConstraint
cat: Final = Cat
stack: Final = Stack
greater_than: Final = kind("GreaterThan", "lower_bound", lambda c, x: x > c.lower_bound)
greater_than_eq: Final = kind("GreaterThanEq", "lower_bound", lambda c, x: x >= c.lower_bound)
less_than: Final = kind("LessThan", "upper_bound", lambda c, x: x < c.upper_bound)
interval: Final = kind(
    "Interval", "lower_bound upper_bound",
    lambda c, x: (x >= c.lower_bound) & (x <= c.upper_bound),
)  # fmt: skip
half_open_interval: Final = kind(
    "HalfOpenInterval", "lower_bound upper_bound",
    lambda c, x: (x >= c.lower_bound) & (x < c.upper_bound),
)  # fmt: skip
integer_interval: Final = kind(
    "IntegerInterval", "lower_bound upper_bound",
    lambda c, x: _whole(x) & (x >= c.lower_bound) & (x <= c.upper_bound), is_discrete=True,
)  # fmt: skip
_at_least: Final = kind(
    "IntegerGreaterThan", "lower_bound", lambda c, x: _whole(x) & (x >= c.lower_bound),
    is_discrete=True,
)  # fmt: skip
real: Final = kind("Real", "", lambda c, x: x == x)()  # NaN is not
boolean: Final = kind("Boolean", "", lambda c, x: (x == 0) | (x == 1), is_discrete=True)()
nonnegative_integer: Final = _at_least(0)
positive_integer: Final = _at_least(1)
positive: Final = greater_than(0.0)
nonnegative: Final = greater_than_eq(0.0)
unit_interval: Final = interval(0.0, 1.0)

# Vectors and matrices

real_vector: Final = independent(real, 1)
one_hot: Final = kind(
    "OneHot", "", lambda c, x: boolean.check(x).all(-1) & (x.sum(-1) == 1), event_dim=1,
    is_discrete=True,
)()  # fmt: skip
multinomial: Final = kind(
    "Multinomial", "upper_bound", lambda c, x: (x >= 0).all(-1) & (x.sum(-1) <= c.upper_bound),
    event_dim=1, is_discrete=True,
)  # fmt: skip
simplex: Final = kind(
    "Simplex", "", lambda c, x: (x >= 0).all(-1) & (abs(x.sum(-1) - 1) < 1e-6), event_dim=1
)()


def _has_unit_rows(x: Any) -> Any:
    near = wf.finfo(x.dtype).eps * x.shape[-1] * 10
    return (((x.detach() ** 2).sum(-1).sqrt() - 1).abs() <= near).all(-1)


def _is_symmetric(x: Any) -> Any:
    if x.shape[-2] != x.shape[-1]:
        return square.check(x)
    return _all(wf.isclose(x, x.mT, atol=1e-6), 2)


def _is_definite(x: Any) -> Any:
    return linalg.cholesky_ex(x.detach()).info == 0


def _is_semidefinite(x: Any) -> Any:
    return (linalg.eigvalsh(x.detach()) >= 0).all(-1)


def _matrices(name: str, *checks: Callable[[Any], Any]) -> Any:
    """A constraint of matrices that pass all checks; the next ones need those before."""

    def check(self: Any, value: Any) -> Any:
        found = checks[0](value)
        for each in checks[1:] if value.shape[-2] == value.shape[-1] else ():
            found = found & each(value)
        return found

    return kind(name, "", check, event_dim=2, of_arrays=False)()


def _is_lower(x: Any) -> Any:
    return _all(x.tril() == x, 2)


def _has_positive_diagonal(x: Any) -> Any:
    return (x.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


square: Final = _matrices(
    "Square", lambda x: wf.full(x.shape[:-2], x.shape[-2] == x.shape[-1], dtype=wf.bool)
)
lower_triangular: Final = _matrices("LowerTriangular", _is_lower)
lower_cholesky: Final = _matrices("LowerCholesky", _is_lower, _has_positive_diagonal)
corr_cholesky: Final = _matrices("CorrCholesky", _is_lower, _has_positive_diagonal, _has_unit_rows)
symmetric: Final = _matrices("Symmetric", _is_symmetric)
positive_semidefinite: Final = _matrices("PositiveSemidefinite", _is_symmetric, _is_semidefinite)
positive_definite: Final = _matrices("PositiveDefinite", _is_symmetric, _is_definite)
