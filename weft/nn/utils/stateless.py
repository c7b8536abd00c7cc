"""`functional_call` under its deprecated name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft import func
from weft.nn.module.module import Module
from weft.ops.warning import warn


def functional_call(
    module: Module,
    parameters_and_buffers: Mapping[str, Any],
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """`weft.func.functional_call` with one dictionary of tensors; deprecated, with a warning.

    Arguments and errors are the same.
    """
    warn(
        "nn.utils.stateless.functional_call is deprecated; use func.functional_call",
        FutureWarning,
    )
    return func.functional_call(
        module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict
    )
