"""Pruning: entries of a parameter are zeroed by masks that are stored beside it.

A pruned `weight` is the parameter `weight_orig` times the buffer `weight_mask`, computed before
each call. Pruning again zeroes more of the remaining entries.

Source: Han et al., "Learning both Weights and Connections for Efficient Neural Networks" (2015).
"""

from __future__ import annotations

import abc
import numbers
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, TypeVar

from weft.documentation import arguments_of
from weft.eager.functions.creation.constructor import ones_like
from weft.eager.functions.random.generator import rand
from weft.eager.record.pending.mode import no_grad
from weft.errors import ArgumentError
from weft.ir.node import at_user_line
from weft.nn.module.module import Module
from weft.nn.utils import pruning_mask as masks
from weft.nn.utils.vector import parameters_to_vector

__all__ = [
    "BasePruningMethod", "CustomFromMask", "Identity", "L1Unstructured", "LnStructured",
    "PruningContainer", "RandomStructured", "RandomUnstructured", "custom_from_mask",
    "global_unstructured", "identity", "is_pruned", "l1_unstructured", "ln_structured",
    "random_structured", "random_unstructured", "remove",
]  # fmt: skip

M = TypeVar("M", bound=Module)


class BasePruningMethod(abc.ABC):
    """A pruning method; a subclass defines `compute_mask` and `PRUNING_TYPE`.

    `PRUNING_TYPE` says what `compute_mask` gets of a parameter that is already pruned: for
        `"unstructured"` the remaining entries, for `"structured"` the remaining slices along its
        `dim`, for `"global"` everything.
    """

    PRUNING_TYPE: ClassVar[str]
    _tensor_name: str = ""

    def __call__(self, module: Module, inputs: Any) -> None:
        """The forward pre-hook: sets the pruned value."""
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abc.abstractmethod
    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Ones for entries of `t` to keep, else zeros; within what `default_mask` keeps."""

    def apply_mask(self, module: Module) -> Any:
        """The pruned value: original times mask."""
        mask = getattr(module, f"{self._tensor_name}_mask")
        orig = getattr(module, f"{self._tensor_name}_orig")
        return mask.to(orig.dtype) * orig

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any
    ) -> BasePruningMethod:
        """Prune a parameter of a module; returns this method, or all that were applied to it.

        Args:
            args: for the method, like `kwargs`.
            importance_scores: ranked instead of the parameter; of its shape.
        """
        method = cls(*args, **kwargs)
        method._tensor_name = name
        orig = getattr(module, name)
        scores = orig if importance_scores is None else masks.checked_shape(importance_scores, orig)
        number, before = _found(module, name)
        whole = method if before is None else _joined(before, method)
        mask = ones_like(orig) if before is None else getattr(module, f"{name}_mask")
        with no_grad():
            mask = whole.compute_mask(scores.detach(), default_mask=mask.detach().clone())
        if before is None:
            delattr(module, name)
            module.register_parameter(f"{name}_orig", orig)
        else:
            del module._forward_pre_hooks[number]  # pyright: ignore[reportPrivateUsage]
        module.register_buffer(f"{name}_mask", mask)
        whole(module, None)
        module.register_forward_pre_hook(whole)
        return whole

    def prune(self, t: Any, default_mask: Any = None, importance_scores: Any = None) -> Any:
        """A tensor times its mask."""
        scores = t if importance_scores is None else masks.checked_shape(importance_scores, t)
        mask = ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=mask)

    def remove(self, module: Module) -> None:
        """Make the pruned value the parameter, and remove the mask; pruned entries are 0."""
        name = self._tensor_name
        orig, value = getattr(module, f"{name}_orig"), self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        with no_grad():
            orig.copy_(value)
        delattr(module, f"{name}_orig")
        delattr(module, f"{name}_mask")
        setattr(module, name, orig)


class PruningContainer(BasePruningMethod):
    """Several methods applied to one parameter in order."""

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if args:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """Add a method for the same parameter."""
        if not isinstance(method, BasePruningMethod):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                f"PruningContainer: expected a BasePruningMethod, got {type(method).__name__}"
                f"{at_user_line()}"
            )
        if method._tensor_name != self._tensor_name:
            raise ArgumentError.here(
                f"PruningContainer: expected a method for {self._tensor_name!r}, got one for "
                f"{method._tensor_name!r}"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: Any) -> Any:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The current mask, combined with the last method's mask of what it keeps."""
        method = self._pruning_methods[-1]
        rest = _rest(method, t, default_mask)
        mask = default_mask.to(t.dtype, copy=True)
        mask[rest] = method.compute_mask(t[rest], default_mask=default_mask[rest]).to(mask.dtype)
        return mask


def _rest(method: BasePruningMethod, t: Any, mask: Any) -> Any:
    """The index of the part that a method prunes."""
    if method.PRUNING_TYPE == "unstructured":
        return mask == 1
    if method.PRUNING_TYPE == "structured":
        dim = masks.axis_of(t, method.dim)  # type: ignore[attr-defined]
        others = [d for d in range(t.ndim) if d != dim]
        return (*[slice(None)] * dim, mask.sum(dim=others) != 0)
    if method.PRUNING_TYPE == "global":
        return (slice(None),) * t.ndim
    raise ArgumentError.here(
        f"{type(method).__name__}: expected a PRUNING_TYPE unstructured, structured or global, got "
        f"{method.PRUNING_TYPE!r}"
    )


class Identity(BasePruningMethod):
    """Prunes nothing, but adds a mask."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask as it is."""
        return default_mask


class _Amount(BasePruningMethod):
    """Prunes a number of entries, or a fraction of them.

    Args:
        amount: how many (an integer), or what fraction of the remaining ones (a float).
    """

    def __init__(self, amount: float) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def _count(self, size: int) -> int:
        """How many of `total` entries are pruned."""
        count = _compute_nparams_toprune(self.amount, size)
        _validate_pruning_amount(count, size)
        return count


@arguments_of(_Amount)
class RandomUnstructured(_Amount):
    """Prunes random entries."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Zeros at random places."""
        return masks.without(default_mask, rand(t.numel()), self._count(t.numel()))


@arguments_of(_Amount)
class L1Unstructured(_Amount):
    """Prunes the entries of smallest absolute value."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Zeros where absolute values are smallest."""
        return masks.without(default_mask, t.abs().reshape(-1), self._count(t.numel()))


@arguments_of(_Amount)
class RandomStructured(_Amount):
    """Prunes random slices along a dimension.

    Args:
        dim: the dimension.
    """

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Zeros in random slices."""
        size = masks.slice_count(t, self.dim)
        return masks.without_slices(default_mask, rand(size), self._count(size), self.dim)


@arguments_of(RandomStructured)
class LnStructured(_Amount):
    """Prunes the slices along a dimension with the smallest `n`-norms.

    Args:
        n: the exponent of the norm; may be `inf` or `-inf`.
    """

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, n: Any, dim: int = -1) -> None:
        super().__init__(amount)
        self.n = n
        self.dim = dim

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Zeros in the slices of smallest norm."""
        count = self._count(masks.slice_count(t, self.dim))
        return masks.without_slices(
            default_mask, masks.slice_norms(t, self.n, self.dim), count, self.dim
        )


class CustomFromMask(BasePruningMethod):
    """Prunes where a given mask is zero.

    Args:
        mask: of the parameter's shape.
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Any) -> None:
        self.mask = mask

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The combined mask."""
        return default_mask * masks.checked_shape(self.mask, default_mask).to(default_mask.dtype)


def identity(module: M, name: str) -> M:
    """Add a mask for a parameter without pruning anything.

    Args:
        module: the module.
        name: the parameter's name.
    """
    Identity.apply(module, name)
    return module


@arguments_of(identity, RandomUnstructured)
def random_unstructured(module: M, name: str, amount: float) -> M:
    """Prune random entries of a parameter.

    >>> from weft import nn
    >>> layer = nn.utils.prune.random_unstructured(nn.Linear(4, 5), "weight", amount=0.25)
    >>> int((layer.weight == 0).sum()), [name for name, _ in layer.named_parameters()]
    (5, ['bias', 'weight_orig'])
    """
    RandomUnstructured.apply(module, name, amount)
    return module


@arguments_of(random_unstructured)
def l1_unstructured(module: M, name: str, amount: float, importance_scores: Any = None) -> M:
    """Prune the entries of a parameter, or of the scores, with the smallest absolute values.

    Args:
        importance_scores: ranked instead of the parameter; of its shape.
    """
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


@arguments_of(random_unstructured, RandomStructured)
def random_structured(module: M, name: str, amount: float, dim: int) -> M:
    """Prune random slices of a parameter along a dimension."""
    RandomStructured.apply(module, name, amount, dim)
    return module


@arguments_of(l1_unstructured, LnStructured, RandomStructured)
def ln_structured(
    module: M, name: str, amount: float, n: Any, dim: int, importance_scores: Any = None
) -> M:
    """Prune the slices of a parameter along a dimension with the smallest `n`-norms."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


@arguments_of(identity)
def custom_from_mask(module: M, name: str, mask: Any) -> M:
    """Prune where a mask is zero.

    Args:
        mask: of the parameter's shape.
    """
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: Mapping[tuple[Module, str], Any] | None = None,
    **kwargs: Any,
) -> None:
    """Prune several parameters together, as if they were one.

    Args:
        parameters: pairs of a module and a name.
        pruning_method: an unstructured one, such as `L1Unstructured`.
        importance_scores: ranked instead of some of the parameters.
        kwargs: for the method, such as `amount`.
    """
    if not isinstance(parameters, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"global_unstructured: expected pairs, got {parameters!r}{at_user_line()}")
    if not isinstance(importance_scores, Mapping | None):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(
            f"global_unstructured: expected importance_scores by pair, got {importance_scores!r}"
            f"{at_user_line()}"
        )
    pairs, ranked = list(parameters), importance_scores or {}
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            f"global_unstructured: expected an unstructured method, got {pruning_method.__name__}"
            f"{at_user_line()}"
        )
    with no_grad():
        values = [getattr(module, name) for module, name in pairs]
        masks = [
            getattr(module, f"{name}_mask", ones_like(value))
            for (module, name), value in zip(pairs, values, strict=True)
        ]
        scores = [ranked.get(pair, value) for pair, value in zip(pairs, values, strict=True)]
        whole = PruningContainer(method).compute_mask(
            parameters_to_vector(scores), parameters_to_vector(masks)
        )
        parts = whole.split([value.numel() for value in values])
    for (module, name), value, part in zip(pairs, values, parts, strict=True):
        custom_from_mask(module, name, part.reshape(value.shape))


@arguments_of(identity)
def remove(module: M, name: str) -> M:
    """Make a pruned parameter an ordinary one; pruned entries are 0.

    Raises:
        ArgumentError: it is not pruned.
    """
    number, method = _found(module, name)
    if method is None:
        raise ArgumentError.here(f"prune.remove: {name!r} of {type(module).__name__} is not pruned")
    method.remove(module)
    del module._forward_pre_hooks[number]  # pyright: ignore[reportPrivateUsage]
    return module


@arguments_of(identity)
def is_pruned(module: Module) -> bool:
    """Whether a parameter of the module or of its submodules is pruned."""
    return any(
        isinstance(hook, BasePruningMethod)
        for each in module.modules()
        for hook in each._forward_pre_hooks.values()
    )


# what the methods share


def _found(module: Module, name: str) -> tuple[int, BasePruningMethod | None]:
    """The pruning method of a parameter, and the hook's id."""
    for number, hook in module._forward_pre_hooks.items():  # pyright: ignore[reportPrivateUsage]
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:  # pyright: ignore[reportPrivateUsage]
            return number, hook
    return -1, None


def _joined(before: BasePruningMethod, method: BasePruningMethod) -> PruningContainer:
    earlier = before if isinstance(before, PruningContainer) else (before,)
    return PruningContainer(*earlier, method)


def _validate_pruning_amount_init(amount: Any) -> None:
    """Check an amount: an integer from 0, or a fraction up to 1."""
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"prune: expected a number as amount, got {amount!r}{at_user_line()}")
    if float(amount) < 0 or (not isinstance(amount, numbers.Integral) and float(amount) > 1):
        raise ArgumentError.here(
            f"prune: expected an integer from 0 or a share up to 1.0 as amount, got {amount}"
        )


def _validate_pruning_amount(amount: Any, tensor_size: int) -> None:
    if isinstance(amount, numbers.Integral) and int(amount) > tensor_size:
        raise ArgumentError.here(
            f"prune: expected an amount of at most {tensor_size}, all that there is, got {amount}"
        )


def _compute_nparams_toprune(amount: Any, tensor_size: int) -> int:
    return int(amount) if isinstance(amount, numbers.Integral) else round(amount * tensor_size)
