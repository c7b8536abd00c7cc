"""`functional_call` under its old name."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from weft.nn.module import Module


def functional_call(
    module: Module,
    parameters_and_buffers: Mapping[str, Any],
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """`weft.func.functional_call` of one dictionary of tensors; use that one, this one warns.

    Args:
        parameters_and_buffers: tensors by their paths; what is not named stays.
        args: the positional arguments; what is no tuple is the only one.
        tie_weights: whether a tensor that the module has under several names is replaced under all.
        strict: whether all parameters and buffers must be named, and nothing else.

    Raises:
        AttributeError: a path to no module.
        StateError: with `strict`, a path that there is not or is missing.
        ValueError: with `tie_weights`, different tensors for the names of one.
    """
    warnings.warn(
        "nn.utils.stateless.functional_call is deprecated; use func.functional_call",
        FutureWarning,
        stacklevel=2,
    )
    arguments = args if isinstance(args, tuple) else () if args is None else (args,)
    with module.swapped(parameters_and_buffers, tie_weights, strict):
        return module(*arguments, **(kwargs or {}))
