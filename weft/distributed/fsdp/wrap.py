"""Which modules become units of their own: policies for `FullyShardedDataParallel`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from weft.nn.module.container import ModuleDict, ModuleList
from weft.nn.module.module import Module

__all__ = [
    "CustomPolicy", "ModuleWrapPolicy", "always_wrap_policy", "lambda_auto_wrap_policy",
    "size_based_auto_wrap_policy", "transformer_auto_wrap_policy", "wrap_by",
]  # fmt: skip

MOST_PARAMETERS: Final = 100_000_000
"""A unit's parameters, from which `size_based_auto_wrap_policy` wraps it."""
Wrapper = Callable[..., Module]


class CustomPolicy:
    """Wraps what a function says.

    Args:
        lambda_fn: called with a module; whether to wrap it, or a dict of options for its wrapper.
    """

    def __init__(self, lambda_fn: Callable[[Module], bool | dict[str, Any]]) -> None:
        self._choose = lambda_fn

    def chosen(self, module: Module) -> bool | dict[str, Any]:
        """Whether to wrap a module, or the options of its wrapper."""
        return self._choose(module)


class ModuleWrapPolicy(CustomPolicy):
    """Wraps modules of some classes.

    Args:
        module_classes: the classes.
    """

    def __init__(self, module_classes: Iterable[type[Module]]) -> None:
        classes = tuple(module_classes)
        super().__init__(lambda module: isinstance(module, classes))

    def __call__(self, module: Module, recurse: bool, *args: Any, **kwargs: Any) -> bool:
        """The same, as a function of a module."""
        return recurse or bool(self.chosen(module))


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    """Wrap every module."""
    return True


def lambda_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable[[Module], bool]
) -> bool:
    """Wrap the modules that a function chooses."""
    del nonwrapped_numel
    return recurse or lambda_fn(module)


def transformer_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int,
    transformer_layer_cls: Iterable[type[Module]],
) -> bool:  # fmt: skip
    """Wrap modules of some classes."""
    del nonwrapped_numel
    return recurse or isinstance(module, tuple(transformer_layer_cls))


def size_based_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, min_num_params: int = MOST_PARAMETERS,
    force_leaf_modules: Iterable[type[Module]] | None = None,
    exclude_wrap_modules: Iterable[type[Module]] | None = None,
) -> bool:  # fmt: skip
    """Wrap modules of at least so many parameters that no module inside has taken."""
    large = nonwrapped_numel >= min_num_params
    if recurse:
        return large and not isinstance(module, tuple(force_leaf_modules or ()))
    return large and not isinstance(
        module, tuple(exclude_wrap_modules or (ModuleList, ModuleDict))
    )  # fmt: skip


def wrap_by(policy: Any, module: Module, wrapper: Wrapper, is_root: bool = True) -> int:
    """Wrap modules inside a module, the innermost first; returns the parameters that these have.

    Args:
        policy: one of the classes or functions above.
        wrapper: shards a module in place.
        is_root: whether it is the model, which is left.
    """
    numel, taken = sum([p.numel() for p in module.parameters()]), 0
    ask: Any = policy
    chosen = ask.chosen(module) if isinstance(policy, CustomPolicy) else None
    if chosen is not None or ask(module=module, recurse=True, nonwrapped_numel=numel):
        taken = sum([wrap_by(policy, child, wrapper, False) for child in module.children()])
    if is_root:
        return taken
    if chosen is None:
        chosen = ask(module=module, recurse=False, nonwrapped_numel=numel - taken)
    if not chosen or numel == taken:
        return taken
    wrapper(module, **(chosen if isinstance(chosen, dict) else {}))
    return numel
