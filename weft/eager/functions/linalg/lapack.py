"""Functions of LAPACK as functions of tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from weft.eager.record.call.plan import Plan
from weft.eager.record.pending.lazy import Lazy
from weft.eager.tensor.dispatch import Recorded
from weft.ops.linalg import fault


class ByLapack(Recorded):
    """A recorded function whose failures are data where `fault.as_data` says so."""

    @functools.cached_property
    def _filled(self) -> Recorded:
        return Recorded(fault.as_data(self.function), self.differentiable, self.rows)

    def _planned(self, xs: Sequence[Any], static: dict[str, Any]) -> tuple[Plan, tuple[Lazy, ...]]:
        run = self._filled if fault.are_data() else super()
        return run._planned(xs, static)


def by_lapack(function: Callable[..., Any]) -> ByLapack:
    """A function of graph values as one of tensors."""
    return ByLapack(function, differentiable=True, rows=False)
