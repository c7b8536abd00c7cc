"""`torch.nn._reduction`: reductions of losses as numbers, and by the arguments they had before."""

from __future__ import annotations

import warnings
from typing import Final

from weft.nn.functional.common import reduction_of

__all__ = ["get_enum", "legacy_get_enum", "legacy_get_string"]

NUMBERS: Final = {"none": 0, "mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    """The number of a reduction.

    Raises:
        ValueError: there is no such reduction.

    >>> get_enum("mean")
    1
    """
    if reduction not in NUMBERS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return NUMBERS[reduction]


def legacy_get_string(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> str:
    """The reduction that `size_average` and `reduce` stood for.

    >>> legacy_get_string(False, None, False), legacy_get_string(None, False, False)
    ('sum', 'none')
    """
    reduction = reduction_of("loss", "mean", size_average, reduce)
    if emit_warning:
        warnings.warn(f"size_average and reduce: use reduction={reduction!r}", stacklevel=2)
    return reduction


def legacy_get_enum(
    size_average: bool | None, reduce: bool | None, emit_warning: bool = True
) -> int:
    """Its number."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
