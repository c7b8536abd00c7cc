"""Transforms of parts along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import weft.eager.functions.api as wf
from weft.distributions import constraints
from weft.distributions.transforms.transform import Transform
from weft.distributions.utils import sum_rightmost
from weft.errors import ShapeError

__all__ = ["CatTransform", "StackTransform"]


class StackTransform(Transform):
    """A transform for each element along the axis `dim`."""

    bijective = property(lambda self: all([t.bijective for t in self.transforms]))
    domain = constraints.dependent_property(
        lambda self: constraints.stack([t.domain for t in self.transforms], self.dim)
    )
    codomain = constraints.dependent_property(
        lambda self: constraints.stack([t.codomain for t in self.transforms], self.dim)
    )

    def __init__(self, tseq: Sequence[Any], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.transforms = [t.with_cache(cache_size) if cache_size else t for t in tseq]
        self.dim = dim

    def _parts(self, x: Any) -> Any:
        return self._fits(x, len(self.transforms)).unbind(self.dim)

    def _join(self, parts: Sequence[Any]) -> Any:
        return wf.stack(parts, self.dim)

    def _fits(self, x: Any, size: int) -> Any:
        if not -x.ndim <= self.dim < x.ndim or x.shape[self.dim] != size:
            name, shape = type(self).__name__, tuple(x.shape)
            raise ShapeError.here(
                f"{name}: expected {size} elements along axis {self.dim}, got {shape}"
            )
        return x

    def _call(self, x: Any) -> Any:
        return self._join([t(v) for t, v in zip(self.transforms, self._parts(x), strict=True)])

    def _inverse(self, y: Any) -> Any:
        return self._join([t.inv(v) for t, v in zip(self.transforms, self._parts(y), strict=True)])

    def _slopes(self, x: Any, y: Any) -> list[Any]:
        triples = zip(self.transforms, self._parts(x), self._parts(y), strict=True)
        return [t.log_abs_det_jacobian(u, v) for t, u, v in triples]

    def _log_slope(self, x: Any, y: Any) -> Any:
        return self._join(self._slopes(x, y))


class CatTransform(StackTransform):
    """Transforms of adjacent parts along the axis `dim`, of these lengths (1 by default)."""

    event_dim: Any = property(lambda self: max([t.event_dim for t in self.transforms]))
    length = property(lambda self: sum(self.lengths))
    domain = constraints.dependent_property(
        lambda self: constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)
    )
    codomain = constraints.dependent_property(
        lambda self: constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)
    )

    def __init__(
        self, tseq: Sequence[Any], dim: int = 0, lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)

    def _parts(self, x: Any) -> Any:
        return wf.split(self._fits(x, self.length), self.lengths, self.dim)

    def _join(self, parts: Sequence[Any]) -> Any:
        return wf.cat(parts, self.dim)

    def _log_slope(self, x: Any, y: Any) -> Any:
        pairs = zip(self.transforms, self._slopes(x, y), strict=True)
        found = [sum_rightmost(v, self.event_dim - t.event_dim) for t, v in pairs]
        axis = (self.dim - x.ndim if self.dim >= 0 else self.dim) + self.event_dim
        return wf.cat(found, axis) if axis < 0 else sum(found)  # the axis belongs to one value
