"""Declares loops and branches: operations whose attributes hold functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from weft.ops.declaration import BY_BODY, REGION, Op, Opaque, defop
from weft.ops.declaration.fact import Autocast, Facts

Rule = Callable[..., Any]


def region(
    name: str, *, attrs: Mapping[str, Any], dtype: Rule, shape: Rule, reference: Rule, fast: Rule,
    cases: Rule, normal: Rule, runs: Rule, inputs: str = "*xs", unbounded: bool = False,
) -> Op:  # fmt: skip
    """Declare a loop or a branch; see `defop`.

    Args:
        runs: how often each function runs, given the attributes.
        unbounded: whether values decide how long it runs.
    """
    return defop(
        name, inputs=inputs, attrs=attrs, dtype=dtype, shape=shape, reference=reference, fast=fast,
        vjp=BY_BODY, lower=Opaque(REGION), cases=cases, outputs=-1, partial=True, normal=normal,
        facts=Facts(autocast=Autocast.KEPT, runs=runs, unbounded=unbounded),
    )  # fmt: skip
