"""Which transform leads from all real numbers into a constraint.

>>> import weft as wf
>>> D = wf.distributions
>>> D.transform_to(D.constraints.greater_than(2.0))(wf.tensor(0.0))
tensor(3.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from weft.distributions import constraints, transforms
from weft.distributions.utils import NUMBERS
from weft.errors import DTypeError

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """Factories of transforms, by the class of a constraint."""

    def __init__(self) -> None:
        self._registry: dict[Any, Callable[[Any], Any]] = {}

    def register(self, constraint: Any, factory: Callable[[Any], Any] | None = None) -> Any:
        """Use `factory(constraint)` for constraints of this class; without it, a decorator.

        Raises:
            DTypeError: neither a constraint nor a class of some.
        """
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        kind = type(constraint) if isinstance(constraint, constraints.Constraint) else constraint
        if not isinstance(kind, type) or not issubclass(kind, constraints.Constraint):
            raise DTypeError.here(
                f"register: expected a constraint or a class of some, got {constraint!r}"
            )
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Any) -> Any:
        """A transform from real numbers into the constraint.

        Raises:
            NotImplementedError: none is registered.
        """
        kind = type(constraint)
        if kind not in self._registry:
            raise NotImplementedError(f"{kind.__name__}: has no transform; register one")
        return self._registry[kind](constraint)


biject_to: Final = ConstraintRegistry()
"""Bijective transforms."""
transform_to: Final = ConstraintRegistry()
"""Transforms that need not be bijective, for optimizers: of the simplex, softmax."""


def _beyond(sign: int) -> Callable[[Any], Any]:
    """A transform to above, or below, the bound."""

    def factory(constraint: Any) -> Any:
        bound = constraint.lower_bound if sign > 0 else constraint.upper_bound
        affine = transforms.AffineTransform(bound, sign)
        return transforms.ComposeTransform([transforms.ExpTransform(), affine])

    return factory


def _between(constraint: Any) -> Any:
    low, high = constraint.lower_bound, constraint.upper_bound
    sigmoid = transforms.SigmoidTransform()
    if isinstance(low, NUMBERS) and isinstance(high, NUMBERS) and (low, high) == (0, 1):
        return sigmoid
    affine = transforms.AffineTransform(low, high - low)
    return transforms.ComposeTransform([sigmoid, affine])


for _registry in (biject_to, transform_to):

    def _each(constraint: Any, of: Any = _registry) -> list[Any]:
        return [of(c) for c in constraint.cseq]

    _registry.register(constraints.real, lambda c: transforms.identity_transform)
    _registry.register(
        constraints.independent,
        lambda c, of=_registry: transforms.IndependentTransform(
            of(c.base_constraint), c.reinterpreted_batch_ndims
        ),
    )
    _registry.register(constraints.greater_than, _beyond(1))
    _registry.register(constraints.greater_than_eq, _beyond(1))
    _registry.register(constraints.less_than, _beyond(-1))
    _registry.register(constraints.interval, _between)
    _registry.register(constraints.half_open_interval, _between)
    _registry.register(constraints.corr_cholesky, lambda c: transforms.CorrCholeskyTransform())
    _registry.register(
        constraints.cat,
        lambda c, each=_each: transforms.CatTransform(each(c), c.dim, c.lengths),
    )
    _registry.register(
        constraints.stack, lambda c, each=_each: transforms.StackTransform(each(c), c.dim)
    )

biject_to.register(constraints.simplex, lambda c: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda c: transforms.SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda c: transforms.LowerCholeskyTransform())
for _kind in (constraints.positive_definite, constraints.positive_semidefinite):
    transform_to.register(_kind, lambda c: transforms.PositiveDefiniteTransform())
