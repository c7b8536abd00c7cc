"""Checks of optimizers' options."""

from __future__ import annotations

from weft.errors import OptimizerError
from weft.ir.node import at_user_line


def nonnegative(owner: str, **options: float) -> None:
    """Require options of at least 0.

    Raises:
        OptimizerError: names the option.
    """
    for name, value in options.items():
        if not value >= 0:
            raise OptimizerError(f"{owner}: expected {name} >= 0, got {value}{at_user_line()}")


def decays(owner: str, betas: tuple[float, float]) -> None:
    """Require averaging factors in [0, 1).

    Raises:
        OptimizerError: names the factor.
    """
    for i, beta in enumerate(betas):
        if not 0 <= beta < 1:
            raise OptimizerError(
                f"{owner}: expected betas[{i}] from 0 to below 1, got {beta}{at_user_line()}"
            )
