"""What LAPACK cannot compute raises an error, or is infinite or NaN where failures are data."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.ir.record import record
from weft.ops.boundary.host import Type
from weft.ops.boundary.routine import routine


class _Now(threading.local):
    data = False


_now = _Now()


def are_data() -> bool:
    """Whether failures are data in this thread."""
    return _now.data


def as_data(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with failures as data of what it computes and of its gradient.

    >>> as_data(are_data)()
    True
    """

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        before, _now.data = _now.data, True
        try:
            return function(*args, **kwargs)
        finally:
            _now.data = before

    return run


@record
@dataclass(frozen=True)
class GradientOfData:
    """A gradient that is traced with failures as data."""

    gradient: Callable[..., Any]

    def __call__(self, *args: Any) -> Any:
        """The cotangents of the inputs."""
        return as_data(self.gradient)(*args)


@record
@dataclass(frozen=True)
class Filled:
    """A function of matrices that fails for none, whatever becomes of others beside it.

    Args:
        types: of its results for one matrix.
        instead: what is computed where it fails; NaN by default.
    """

    run: Callable[..., Any]
    types: tuple[Type, ...]
    instead: Callable[..., Any] | None

    def __call__(self, *arrays: Any) -> Any:
        """The results."""
        with contextlib.suppress(np.linalg.LinAlgError):
            return self.run(*arrays)
        if arrays[0].ndim > 2:  # which of them fail is found out one by one
            rows = [self(*[_row(x, i, arrays[0]) for x in arrays]) for i in range(len(arrays[0]))]
            if isinstance(rows[0], tuple):
                return tuple([np.stack(of) for of in zip(*rows, strict=True)])
            return np.stack(rows)
        if self.instead is not None:
            return self.instead(*arrays)
        kinds = [(dtype.numpy, shape) for dtype, shape in self.types]
        return tuple([np.full(s, np.nan if d.kind in "fc" else 0, d) for d, s in kinds])


def _row(x: Any, i: int, matrices: Any) -> Any:
    return x[i] if np.ndim(x) >= matrices.ndim - 2 else x


@routine
def lower_nan(a: Any) -> Any:
    """The factor of a matrix that is not positive definite."""
    return np.tril(np.full_like(a, np.nan))
