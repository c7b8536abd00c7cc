"""Reductions over ranks."""

from __future__ import annotations

from enum import Enum


class ReduceOp(Enum):
    """Reductions over ranks; `AVG` is a sum divided by the number of ranks."""

    SUM = "sum"
    AVG = "mean"
    PRODUCT = "product"
    MIN = "min"
    MAX = "max"
    BAND = "band"
    BOR = "bor"
    BXOR = "bxor"
