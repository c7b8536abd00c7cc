"""Accumulators of gradients: who takes waits until enough have come, and stale ones are dropped."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from weft.errors import ArgumentError
from weft.ops.resource.spec import ResourceSpec
from weft.resource.attempt import Attempt, Blocking, Progress
from weft.resource.base import Array, Cancellation, register
from weft.resource.component import Dims, brackets, fits, numpy_type


class Accumulator(Blocking):
    """Sums gradients that are not older than its step; a take gives the sum or mean and counts on.

    Attributes:
        step: gradients of earlier steps are dropped.
        count: the gradients since the last take.
        stale: the gradients that were dropped, ever.
    """

    family = what = "accumulator"

    def __init__(self, spec: ResourceSpec) -> None:
        super().__init__(spec, lines=1)
        self.dtype: Final = numpy_type(spec.option("dtype"))
        self.shape: Final[Dims | None] = spec.option("shape")
        self._means: Final = spec.option("reduction_type", "MEAN") == "MEAN"
        self.step = self.count = self.stale = 0

    def call(
        self, method: str, inputs: Sequence[Array], options: Mapping[str, Any],
        cancel: Cancellation,
    ) -> list[Array]:  # fmt: skip
        """Apply or take a gradient, set the step, or tell the counts."""
        del options
        if method == "apply_gradient":
            self._apply(int(inputs[0]), inputs[1:])
        elif method == "take_gradient":
            return self._take(int(inputs[0]), cancel)
        elif method == "set_global_step":
            with self.lock:
                self.step = int(inputs[0])
        elif method in ("num_accumulated", "num_stale"):
            count = self.count if method == "num_accumulated" else self.stale
            return [np.array(count, np.int32)]
        else:
            known = "apply_gradient, take_gradient, set_global_step, num_accumulated, num_stale"
            raise ArgumentError(f"accumulator: expected one of {known}, got {method!r}")
        return []

    def _apply(self, local_step: int, gradient: Sequence[Array]) -> None:
        with self.lock:
            if local_step < self.step:
                self.stale += 1
                return
            self.check(gradient)
            self.add(gradient)
            self.count += 1
            self.flush()

    def _take(self, required: int, cancel: Cancellation) -> list[Array]:
        if required <= 0:
            raise ArgumentError(f"Argument num_required must be positive, but was {required}")

        def run() -> Progress:
            if self.count < required:
                return Progress.NONE
            attempt.result = self.taken(self._means)
            self.step += 1
            self.count = 0
            return Progress.COMPLETE

        attempt = Attempt("TakeGrad", run)
        return self.attempt(self.lines[0], attempt, cancel)

    @abc.abstractmethod
    def check(self, gradient: Sequence[Array]) -> None:
        """Check a gradient.

        Raises:
            ArgumentError: it does not fit the shape, or the sum of those before.
        """

    @abc.abstractmethod
    def add(self, gradient: Sequence[Array]) -> None:
        """Add a gradient to the sum; the first one, if `count` is 0, begins it."""

    @abc.abstractmethod
    def taken(self, mean: bool) -> list[Array]:
        """The sum or the mean, which the caller owns."""


def _mismatch(text: str) -> ArgumentError:
    return ArgumentError(f"Shape mismatch: {text}")


@register("ConditionalAccumulator")
class ConditionalAccumulator(Accumulator):
    """Of dense gradients."""

    _sum: Array

    def check(self, gradient: Sequence[Array]) -> None:
        """Check the shape of a gradient."""
        got = gradient[0].shape
        if gradient[0].dtype != self.dtype:
            text = f"expected a gradient of type {self.dtype}, got {gradient[0].dtype}"
            raise ArgumentError(f"accumulator: {text}")
        if self.count and got != self._sum.shape:
            raise _mismatch(f"expected {brackets(self._sum.shape)}, got {brackets(got)}")
        if self.shape is not None and not fits(got, self.shape):
            raise _mismatch(f"expected {brackets(self.shape)}, got {brackets(got)}")

    def add(self, gradient: Sequence[Array]) -> None:
        """Add a gradient."""
        if self.count:
            self._sum += gradient[0]
        else:
            self._sum = np.array(gradient[0])

    def taken(self, mean: bool) -> list[Array]:
        """The sum or the mean."""
        if mean:
            self._sum /= self.dtype.type(self.count)
        return [self._sum]


@register("SparseConditionalAccumulator")
class SparseConditionalAccumulator(Accumulator):
    """Of gradients that are rows with their indices; a mean is over the gradients with the row."""

    _indices: Array
    _rows: Array
    _counts: Array

    def check(self, gradient: Sequence[Array]) -> None:
        """Check indices, values and the shape, if one is given."""
        indices, values, *rest = gradient
        if indices.ndim != 1:
            text = f"Input indices should be vector but received shape: {brackets(indices.shape)}"
            raise ArgumentError(text)
        if values.ndim == 0:
            raise ArgumentError("Values cannot be 0-dimensional.")
        if len(values) != len(indices):
            raise ArgumentError(
                f"Expected {len(indices)} non-empty input values, got {len(values)}"
            )
        if rest:
            self._check_told(rest[0].tolist())
        self._check_indices(indices)
        self._check_values(values.shape)

    def _check_told(self, told: Sequence[int]) -> None:
        shape = self.shape or ()
        if len(shape) > len(told):
            raise _mismatch(f"expected shape rank at least {len(shape)}, got {len(told)}")
        for axis, (size, got) in enumerate(zip(shape, told, strict=False)):
            if size is not None and size != got:
                raise _mismatch(f"expected shape dim {axis} to be {size}, got {got}")

    def _check_indices(self, indices: Array) -> None:
        most = self.shape[0] if self.shape else None
        wrong = np.flatnonzero((indices < 0) | (indices >= (np.inf if most is None else most)))
        if wrong.size:
            place = int(wrong[0])
            raise _mismatch(
                f"index of slice {place} exceeded limits of shape; index is "
                f"{int(indices[place])} exceeded {'0' if most is None else most}"
            )

    def _check_values(self, got: tuple[int, ...]) -> None:
        shape: Dims = self._rows.shape if self.count else self.shape or ()
        if self.count and len(got) != len(shape):
            raise _mismatch(f"expected values rank {len(shape)}, got {len(got)}")
        if len(got) < len(shape):
            raise _mismatch(f"expected values rank at least {len(shape)}, got {len(got)}")
        for axis, size in enumerate(shape):
            if axis and size is not None and size != got[axis]:
                raise _mismatch(f"expected values dim {axis} to be {size}, got {got[axis]}")

    def add(self, gradient: Sequence[Array]) -> None:
        """Add rows; those of one index are added up."""
        indices, values = gradient[0].astype(np.int64), gradient[1]
        own = np.unique(indices)
        before = np.empty(0, np.int64)
        if self.count:
            before = self._indices
            indices = np.concatenate([before, indices])
            values = np.concatenate([self._rows, values])
        merged, places = np.unique(indices, return_inverse=True)
        rows = np.zeros((len(merged), *values.shape[1:]), self.dtype)
        np.add.at(rows, places, values)
        counts = np.zeros(len(merged), np.int64)
        if self.count:
            counts[np.searchsorted(merged, before)] = self._counts
        counts[np.searchsorted(merged, own)] += 1
        self._indices, self._rows, self._counts = merged, rows, counts

    def taken(self, mean: bool) -> list[Array]:
        """Indices, the sums or means of their rows, and the shape; -1 where it is not known."""
        if mean:
            wide = self._counts.reshape(-1, *[1] * (self._rows.ndim - 1))
            self._rows /= wide.astype(self.dtype)
        first = self.shape[0] if self.shape else None
        shape = [-1 if first is None else first, *self._rows.shape[1:]]
        return [self._indices, self._rows, np.array(shape, np.int64)]
