"""The base of distributions: parameters, shapes, checks, sampling, expansion."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, dataclass_transform

import numpy as np

import weft.eager.functions.api as wf
from weft.distributions.constraints import is_dependent
from weft.distributions.utils import (
    NUMBERS,
    broadcast_all,
    floating_kind,
    formula,
    lazy_property,
    quantity,
)
from weft.eager.functions.api import Size, Tensor
from weft.eager.record.pending.access import array_of
from weft.eager.tensor.dispatch import recorded
from weft.errors import ArgumentError, TracerError
from weft.exports import home_of
from weft.func import grad
from weft.ir.dtype import int32
from weft.ir.node import Value
from weft.ops.declaration import catalogue
from weft.ops.warning import warn

__all__ = ["Distribution", "ExponentialFamily"]

_REQUIRED: Any = inspect.Parameter.empty


class _Parameter(NamedTuple):
    constraint: Any
    default: Any


def parameter(constraint: Any, default: Any = _REQUIRED) -> Any:
    """A parameter of a distribution of numbers; by default it has to be given."""
    return _Parameter(constraint, default)


def _checking(*, default: bool | None = None, kw_only: bool = True) -> Any:
    """The last parameter of all distributions, for type checkers."""
    raise NotImplementedError


@dataclass_transform(field_specifiers=(parameter, _checking))
class _Declared:
    """Marks classes whose constructors take their parameters, for type checkers."""


@recorded
def _checked(x: Value, good: Value, *, text: str) -> Value:
    wrong = catalogue.sum(catalogue.cast(catalogue.logical_not(good), dtype=int32))
    return catalogue.check(x, wrong, text=text)


def require(value: Any, constraint: Any, text: str) -> Any:
    """A tensor or a number that satisfies a constraint.

    Raises:
        ArgumentError: it is computed and does not.
        OutOfRangeError: it does not, when it is computed.
    """
    if not isinstance(value, (Tensor, np.ndarray, *NUMBERS)):
        return value  # which is refused later
    x: Any = np.asarray(value) if isinstance(value, NUMBERS) else wf.as_tensor(value)
    array = _array_of(x)
    if array is not None:
        given = array if constraint.of_arrays and array.dtype.kind in "biuf" else x
        try:
            valid: Any = _on_arrays(constraint).check(given)
            pending = given is array and isinstance(valid, Tensor)  # bounds are
            good = np.asarray(True if pending else valid)
        except TracerError:  # bounds are arguments of a traced function
            pending, good = True, np.asarray(True)
        if not good.all():
            found = array.reshape((-1, *array.shape[good.ndim :]))
            raise ArgumentError.here(f"{text}, got {found[np.argmin(good.ravel())]}")
        if not pending:
            return value
    return _checked(wf.as_tensor(x), constraint.check(x), text=text)


def _array_of(x: Any) -> Any:
    """The array of a tensor that is computed; `None` if it is pending."""
    if isinstance(x, np.ndarray):
        return x
    return None if x.lazy.array is None else array_of(x.lazy)


def _on_arrays(constraint: Any) -> Any:
    """The constraint with arrays for tensors that are computed."""
    bounds = {k: _array_of(v) for k, v in vars(constraint).items() if isinstance(v, Tensor)}
    known = {k: v for k, v in bounds.items() if v is not None}
    if known:
        constraint = copy.copy(constraint)
        vars(constraint).update(known)
    return constraint


class Distribution(_Declared):
    """A probability distribution, or a batch of some.

    With `validate_args` (by default `set_default_validate_args`), parameters and values are
    checked: at once if they are computed, otherwise when they are.

    Attributes:
        arg_constraints: where each parameter lies.
        support: where values lie.

    Raises:
        ValueError: a parameter or a value does not satisfy its constraint.

    >>> import weft as wf
    >>> wf.distributions.Normal(0.0, wf.ones(3)).batch_shape
    (3,)
    """

    if TYPE_CHECKING:
        validate_args: bool | None = _checking(default=None)

    has_rsample = has_enumerate_support = formula(False)
    _validate_args = formula(__debug__)
    arg_constraints = quantity(lambda d: d._no("arg_constraints"))
    support = quantity(lambda d: d._no("support"))
    mean = quantity(lambda d: d._no("mean"))
    mode = quantity(lambda d: d._no("mode"))
    variance = quantity(lambda d: d._no("variance"))
    stddev = quantity(lambda d: d.variance.sqrt())
    batch_shape = quantity(lambda d: d._batch_shape)
    event_shape = quantity(lambda d: d._event_shape)

    # What subclasses define, of checked values; shapes are those of results.
    _log_prob = formula(lambda d, value: d._no("log_prob"))
    _cdf = formula(lambda d, value: d._no("cdf"))
    _icdf = formula(lambda d, value: d._no("icdf"))
    _entropy = formula(lambda d: d._no("entropy"))
    _values = formula(lambda d: d._no("enumerate_support"))

    def _draw(self, shape: Size) -> Any:
        if type(self)._icdf is Distribution._icdf:
            return self._no("sample")
        first = vars(self)[self._given[0]]
        u = wf.rand(shape, dtype=first.dtype)
        return self._icdf(u.clamp(min=wf.finfo(first.dtype).tiny))

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = {name: p for name, p in vars(cls).items() if isinstance(p, _Parameter)}
        if own:
            for name in own:
                delattr(cls, name)
            cls.arg_constraints = {name: p.constraint for name, p in own.items()}
            cls.__init__ = _constructor({name: p.default for name, p in own.items()})

    def __init__(
        self, batch_shape: Sequence[int] = (), event_shape: Sequence[int] = (),
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        self._shaped(batch_shape, event_shape)
        try:
            constraints = self.arg_constraints
            names = [n for n in constraints if n in vars(self) or not self._follows(n)]
        except NotImplementedError:
            warn(f"{type(self).__name__}: has no arg_constraints, so that nothing is checked")
            names = []
        sound = self._sound(validate_args, **{name: getattr(self, name) for name in names})
        vars(self).update({name: x for name, x in sound.items() if name in vars(self)})

    def _no(self, what: str) -> Any:
        raise NotImplementedError(f"{type(self).__name__}: has no {what}")

    def _shaped(self, batch_shape: Sequence[int], event_shape: Sequence[int] = ()) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)

    def _take(self, validate_args: bool | None, **parameters: Any) -> None:
        """Keep parameters of numbers, broadcast; those that are `None` follow from others."""
        given = {name: p for name, p in parameters.items() if p is not None}
        if {"probs", "logits"} <= {*parameters} and len(given) != len(parameters) - 1:
            raise ArgumentError.here(
                f"{type(self).__name__}: expected either probs or logits, got "
                f"{'both' if 'probs' in given else 'neither'}"
            )
        self._given = tuple(given)
        found = broadcast_all(*self._sound(validate_args, **given).values())
        kind = floating_kind(found)
        floats = [x if x.dtype.is_floating else x.to(kind) for x in found]
        vars(self).update(zip(given, floats, strict=True))
        self._shaped(found[0].shape)

    def _sound(self, validate_args: bool | None, **given: Any) -> dict[str, Any]:
        """Parameters, checked if arguments are."""
        if validate_args is not None:
            self._validate_args = bool(validate_args)
        constraints = self._constraints() if self._validate_args and given else {}
        sound = {
            name: require(given[name], c, f"{type(self).__name__}: expected {name} within {c}")
            for name, c in constraints.items()
            if name in given and not is_dependent(c)
        }
        return {name: sound.get(name, x) for name, x in given.items()}

    def _constraints(self) -> dict[str, Any]:
        """Those of the class, and of its bases, whose parameters it may have, too."""
        every = [vars(c).get("arg_constraints") for c in reversed(type(self).__mro__)]
        inherited = {k: v for each in every if isinstance(each, dict) for k, v in each.items()}
        return {**inherited, **self.arg_constraints}

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        """The same distribution with parameters broadcast to `batch_shape`.

        Raises:
            NotImplementedError: a subclass has a constructor of its own and no `expand`.
        """
        maker = next(c for c in type(self).__mro__ if "__init__" in vars(c))
        if _instance is None and not home_of(maker).startswith("weft."):
            raise NotImplementedError(f"{maker.__name__}: has its own constructor, but no expand")
        ranks = {name: c.event_dim for name, c in self._constraints().items()}
        changed: dict[str, Any] = {}
        for name, value in vars(self).items():
            if isinstance(value, Distribution):
                changed[name] = value.expand(batch_shape)
            elif name in ranks:
                shape = (*batch_shape, *value.shape[value.ndim - ranks[name] :])
                changed[name] = value.expand(shape)
        return self._copied(batch_shape, _instance, **changed)

    def _copied(self, batch_shape: Sequence[int], _instance: Any, **changed: Any) -> Any:
        """A copy with other attributes, which computes again what follows from them."""
        new: Any = type(self).__new__(type(self)) if _instance is None else _instance
        kept = {k: v for k, v in vars(self).items() if k in changed or not self._follows(k)}
        vars(new).update({**kept, **changed, **vars(new)}, _batch_shape=Size(batch_shape))
        return new

    def _follows(self, name: str) -> bool:
        """Whether it is computed when it is needed."""
        return isinstance(inspect.getattr_static(type(self), name, None), lazy_property)

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether arguments are checked by default."""
        if value not in (True, False):
            raise ArgumentError.here(f"set_default_validate_args: expected a bool, got {value!r}")
        Distribution._validate_args = bool(value)

    def sample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Random values of shape `sample_shape + batch_shape + event_shape`, without gradient."""
        with wf.no_grad():
            own = type(self).rsample is Distribution.rsample
            shape = self._extended_shape(sample_shape)
            return self._draw(shape) if own else self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Any:
        """Random values with gradients with respect to the parameters, if `has_rsample`."""
        shape = self._extended_shape(sample_shape)
        return self._draw(shape) if self.has_rsample else self._no("rsample")

    def sample_n(self, n: int) -> Any:
        """`sample((n,))`, which is preferred."""
        warn("sample_n: is deprecated; use sample((n,))", FutureWarning)
        return self.sample((n,))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density, or of the probability, at `value`."""
        return self._log_prob(self._valid(value))

    def cdf(self, value: Any) -> Any:
        """The probability of values up to `value`."""
        return self._cdf(self._valid(value))

    def icdf(self, value: Any) -> Any:
        """The inverse of `cdf`."""
        return self._icdf(wf.as_tensor(value))

    def entropy(self) -> Any:
        """The entropy in nats."""
        return self._entropy()

    def perplexity(self) -> Any:
        """The exponential of the entropy."""
        return self.entropy().exp()

    def enumerate_support(self, expand: bool = True) -> Any:
        """All values along a new first axis, broadcast to the batch if `expand`."""
        values = self._values()
        found = values.reshape((-1, *[1] * len(self._batch_shape), *values.shape[1:]))
        return found.expand((-1, *self._batch_shape, *values.shape[1:])) if expand else found

    def _extended_shape(self, sample_shape: Sequence[int] = ()) -> Size:
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _valid(self, value: Any) -> Any:
        return self._validate_sample(value) if self._validate_args else wf.as_tensor(value)

    def _validate_sample(self, value: Any) -> Any:
        """The value, checked; what is pending is checked when the result is computed.

        Raises:
            ArgumentError: it is no tensor, does not fit the shapes, or is outside of the support.
        """
        name = type(self).__name__
        if not isinstance(value, Tensor | np.ndarray):
            raise ArgumentError.here(f"{name}: expected a tensor as value, got {value!r}")
        x: Any = wf.as_tensor(value)
        whole, rank = self._extended_shape(), len(self._event_shape)
        pairs = [*zip(x.shape[::-1], whole[::-1], strict=False)]
        good = x.ndim >= rank and x.shape[x.ndim - rank :] == self._event_shape
        if not good or any([i != j and 1 not in (i, j) for i, j in pairs]):
            raise ArgumentError.here(
                f"{name}: expected values that end with event_shape {tuple(self._event_shape)} and "
                f"broadcast with {tuple(whole)}, got {tuple(x.shape)}"
            )
        try:
            support = self.support
        except NotImplementedError:
            warn(f"{name}: has no support, so that values are not checked")
            return x
        return require(x, support, f"{name}: expected values within {support}")

    def __repr__(self) -> str:
        given = {k: vars(self)[k] for k in self.arg_constraints if k in vars(self)}
        shown = [f"{k}: {v if v.numel() == 1 else tuple(v.shape)}" for k, v in given.items()]
        return f"{type(self).__name__}({', '.join(shown)})"


def _constructor(defaults: dict[str, Any]) -> Any:
    """A constructor with these arguments and `validate_args`."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    everything = {"self": _REQUIRED, **defaults, "validate_args": None}
    whole = [inspect.Parameter(name, kind, default=d) for name, d in everything.items()]
    signature = inspect.Signature(whole)

    def __init__(*args: Any, **options: Any) -> None:
        bound = signature.bind(*args, **options)
        bound.apply_defaults()
        self, *given, validate_args = bound.arguments.values()
        self._take(validate_args, **dict(zip(defaults, given, strict=True)))

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    return __init__


class ExponentialFamily(Distribution):
    """Distributions with densities `exp(<t(x), eta> - F(eta) + k(x))`.

    A subclass that defines the natural parameters eta, `_natural_params`, the function F,
    `_log_normalizer(*eta)`, and the mean of k, `_mean_carrier_measure`, has its entropy, and the KL
    divergence of two of its instances, from the gradient of F.

    Source: Nielsen and Nock, "Entropies and cross-entropies of exponential families", 2010.
    """

    _mean_carrier_measure = quantity(lambda d: d._no("_mean_carrier_measure"))
    _natural_params = quantity(lambda d: d._no("_natural_params"))
    _log_normalizer = formula(lambda d, *eta: d._no("_log_normalizer"))

    def _means(self) -> tuple[Any, ...]:
        """The means of t: the gradient of F."""
        eta = self._natural_params
        slope = grad(lambda *x: self._log_normalizer(*x).sum(), tuple(range(len(eta))))
        return slope(*eta)

    def _entropy(self) -> Any:
        eta = self._natural_params
        found = self._log_normalizer(*eta) - self._mean_carrier_measure
        for p, mean in zip(eta, self._means(), strict=True):
            found = found - (p * mean).reshape((*self._batch_shape, -1)).sum(-1)
        return found
