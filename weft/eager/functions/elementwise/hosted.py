"""Special functions that SciPy computes, on tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.eager.tensor.dispatch import recorded
from weft.eager.tensor.handle import Handle
from weft.errors import ConfigError, UndefinedRuleError
from weft.ir.node import Value
from weft.ops.special.hosted import HOSTED, hosted


@recorded
def _run(*xs: Value, name: str) -> Value:
    return hosted(name, *xs)


def run_hosted(name: str, given: Sequence[Handle], shown: str) -> Any:
    """A function of `scipy.special` on tensors of one floating-point dtype.

    Args:
        shown: the name in error messages.

    Raises:
        UndefinedRuleError: a gradient with respect to an argument without a formula.
        ConfigError: SciPy is not installed.
    """
    for x, slope in zip(given, HOSTED[name].slopes, strict=True):
        if slope is None and x.lazy.tracked:
            raise UndefinedRuleError.here(
                f"{shown}: has a gradient by its last argument only; detach() the others"
            )
    try:
        return _run(*given, name=name)
    except ImportError:
        raise ConfigError.here(
            f"{shown}: is computed by SciPy, which is not installed; pip install scipy"
        ) from None
