"""Modules as functions of their parameters and buffers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from weft.eager.functions.shape.joining import stack
from weft.errors import ArgumentError, GradientError, ShapeError

__all__ = ["functional_call", "replace_all_batch_norm_modules_", "stack_module_state"]


class NormModule(Protocol):
    """A module with running batch statistics."""

    track_running_stats: bool
    running_mean: Any
    running_var: Any
    num_batches_tracked: Any


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Stop batch norms in a module from tracking running statistics, so that `vmap` may call it.

    Under `vmap`, each example is a batch of its own, without common statistics.

    Args:
        root: the module, which is changed.

    Returns:
        The module.

    >>> import weft as wf
    >>> net = replace_all_batch_norm_modules_(wf.nn.Sequential(wf.nn.BatchNorm1d(2)))
    >>> len(list(net.buffers()))
    0
    """
    for module in root.modules():
        if hasattr(module, "num_batches_tracked") and hasattr(module, "running_mean"):
            norm: NormModule = module
            norm.track_running_stats = False
            norm.running_mean = norm.running_var = None
            norm.num_batches_tracked = None
    return root


class Swappable(Protocol):
    """The interface of a module used here."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the output."""
        ...

    def swapped(
        self, tensors: Mapping[str, Any], tie_weights: bool, strict: bool
    ) -> AbstractContextManager[None]:
        """Inside it, other tensors replace those at their paths."""
        ...

    def named_parameters(self) -> Iterator[tuple[str, Any]]:
        """Parameters with their paths."""
        ...

    def named_buffers(self) -> Iterator[tuple[str, Any]]:
        """Buffers with their paths."""
        ...


def functional_call(
    module: Swappable, parameter_and_buffer_dicts: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    args: Any = None, kwargs: Mapping[str, Any] | None = None, *, tie_weights: bool = True,
    strict: bool = False,
) -> Any:  # fmt: skip
    """Call a module with other tensors in place of its parameters and buffers.

    Args:
        parameter_and_buffer_dicts: tensors by path, or several such dictionaries; others stay. A
            single dictionary is updated with tensors that the module assigns.
        args: the positional arguments; anything but a tuple is a single one.
        tie_weights: whether a tensor with several names in the module is replaced under all.
        strict: whether all parameters and buffers must be named, and nothing else.

    Raises:
        AttributeError: a path to no module.
        StateError: with `strict`, an unknown or missing path.
        ValueError: with `tie_weights`, different tensors for names of the same tensor.

    >>> import weft as wf
    >>> layer = wf.nn.Linear(2, 1)
    >>> tensors = {"weight": wf.ones(1, 2), "bias": wf.zeros(1)}
    >>> functional_call(layer, tensors, wf.tensor([1.0, 2.0])).tolist()
    [3.0]
    """
    given = parameter_and_buffer_dicts
    tensors = given if isinstance(given, Mapping) else _together(given)
    arguments = args if isinstance(args, tuple) else () if args is None else (args,)
    with module.swapped(tensors, tie_weights, strict):
        return module(*arguments, **(kwargs or {}))


def _together(dicts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for part in dicts:
        twice = [name for name in part if name in found]
        if twice:
            text = f"functional_call: expected each name once, got {twice[0]!r} more than once"
            raise ArgumentError.here(text)
        found.update(part)
    return found


def stack_module_state(models: Sequence[Swappable]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Stack the parameters and buffers of modules of one class, for `vmap` over modules.

    Returns:
        Two dictionaries by path; each tensor has a leading axis for the modules. Parameters are
        leaves that require grad if the modules' do.

    Raises:
        ShapeError: no modules, different classes, or different training modes.
        GradientError: a parameter that requires grad in some modules only.
    """
    kinds = {(type(m), getattr(m, "training", None)) for m in models}
    if len(kinds) != 1:
        raise ShapeError.here(
            "stack_module_state: expected modules of one class, all in training mode or none, got "
            f"{sorted(str(kind.__name__) for kind, _ in kinds) or 'none'}"
        )
    parameters = {
        name: _leaf(name, [dict(m.named_parameters())[name] for m in models])
        for name, _ in models[0].named_parameters()
    }
    buffers = {
        name: stack([dict(m.named_buffers())[name] for m in models])
        for name, _ in models[0].named_buffers()
    }
    return parameters, buffers


def _leaf(name: str, tensors: Sequence[Any]) -> Any:
    """Stacked and detached tensors."""
    if len({x.requires_grad for x in tensors}) != 1:
        raise GradientError.here(
            f"stack_module_state: expected {name} to need a gradient in all modules or in none: "
            f"let all have the same .requires_grad"
        )
    stacked = stack([x.detach() for x in tensors])
    return stacked.requires_grad_(tensors[0].requires_grad)
