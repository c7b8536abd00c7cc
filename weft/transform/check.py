"""Checks gradients against central differences in float64.

The slope along each element is (f(x + h) - f(x - h)) / 2h; its error is about h * h * f''' / 6 from
the formula and eps * |f| / h from rounding, so h = 1e-6 * max(1, |x|) leaves an error of about 1e-9
for a smooth function of ordinary size, far below the tolerances.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.errors import GraphError, MismatchError
from weft.ir.dtype import as_dtype, float64
from weft.ir.graph import Graph
from weft.ir.node import Value
from weft.ops.boundary.state import constant
from weft.ops.declaration import catalogue
from weft.transform.gradient import dense, gradients
from weft.transform.interpretation import Interpretation

__all__ = ["check_gradients"]

Array = np.ndarray[Any, Any]
Model = Callable[..., Any]


def check_gradients(
    f: Model, inputs: Sequence[Any], order: int = 1, step: float = 1e-6, rtol: float = 1e-5,
    atol: float = 1e-6,
) -> None:  # fmt: skip
    """Compares the gradients of `f` with respect to its inputs with central differences.

    Args:
        f: builds nodes; takes one value per input and returns one value or several.
        inputs: arrays. Floating-point ones are converted to float64 and checked, others are passed
            on.
        order: 2 checks the gradients of the gradients as well.
        step: how far each element is moved, times max(1, |element|).

    Raises:
        MismatchError: a gradient differs; the message names the worst element.
        GraphError: `f` has no floating-point output, or `order` is not 1 or 2.

    Example:
        >>> check_gradients(lambda x: catalogue.tanh(x) * x, [np.array([0.5, -2.0])], order=2)
    """
    if order not in (1, 2):
        raise GraphError(f"check_gradients: expected order 1 or 2, got {order}")
    arrays = [_as_checked(x) for x in inputs]
    _check(_scalar(f, seed=1), arrays, step, rtol, atol, "gradient")
    if order == 2:
        slope = _slopes(_scalar(f, seed=1), [i for i, a in enumerate(arrays) if _checkable(a)])
        _check(_scalar(slope, seed=2), arrays, step, rtol, atol, "second-order gradient")


def _as_checked(x: Any) -> Array:
    array = np.asarray(x)
    return array.astype(np.float64) if as_dtype(array.dtype).is_floating else array


def _checkable(array: Array) -> bool:
    return array.dtype == np.float64


def _scalar(f: Model, seed: int) -> Model:
    """A scalar function: the weighted sum of `f`'s floating-point outputs, with fixed weights.

    An output `None`, a gradient that does not depend on an input, counts as 0.
    """

    def total(*xs: Value) -> Value:
        found = f(*xs)
        ys = [y for y in (found if isinstance(found, tuple | list) else (found,)) if y is not None]
        parts = [_weighted(y, seed + i) for i, y in enumerate(ys) if y.dtype is float64]
        if ys and not parts:
            raise GraphError("check_gradients: expected f to give a floating-point value")
        return catalogue.add_n(*parts) if parts else constant(0.0, "float64")

    return total


def _weighted(y: Value, seed: int) -> Value:
    assert y.shape is not None
    weights = np.random.default_rng(seed).uniform(0.5, 1.5, [d or 0 for d in y.shape])
    return catalogue.sum(y * constant(np.asarray(weights)))


def _slopes(f: Model, which: Sequence[int]) -> Model:
    """The gradients of the scalar function `f` with respect to some of its arguments."""

    def slope(*xs: Value) -> list[Value | None]:
        found = gradients([f(*xs)], [xs[i] for i in which])
        return [None if g is None else dense(g) for g in found]

    return slope


class _Runner:
    """A function of values as a function of arrays, run on NumPy."""

    def __init__(self, f: Model, arrays: Sequence[Array]) -> None:
        self.graph = Graph()
        with self.graph.as_default():
            self.xs = [catalogue.placeholder(dtype=a.dtype, shape=a.shape) for a in arrays]
            self.f = f(*self.xs)
        self.run = Interpretation(self.graph, [self.f], self.xs)

    def value(self, arrays: Sequence[Array]) -> float:
        """`f` at `arrays`."""
        return float(self.run(arrays)[0])

    def gradient(self, arrays: Sequence[Array]) -> list[Array]:
        """The gradient from the rules; zeros where they give none."""
        which = [i for i, a in enumerate(arrays) if _checkable(a)]
        with self.graph.as_default():
            found = gradients([self.f], [self.xs[i] for i in which])
            values = [None if g is None else dense(g) for g in found]
        known = [v for v in values if v is not None]
        results = iter(Interpretation(self.graph, known, self.xs)(arrays))
        return [
            np.zeros_like(arrays[i]) if v is None else next(results)
            for i, v in zip(which, values, strict=True)
        ]


def _check(
    f: Model, arrays: Sequence[Array], step: float, rtol: float, atol: float, what: str
) -> None:
    runner = _Runner(f, arrays)
    found = iter(runner.gradient(arrays))
    for i, array in enumerate(arrays):
        if _checkable(array):
            expected = _differences(runner, arrays, i, step)
            _compare(next(found), expected, rtol, atol, f"{what} by input {i}")


def _differences(runner: _Runner, arrays: Sequence[Array], i: int, step: float) -> Array:
    """Central differences for every element of input `i`."""
    slopes = np.zeros_like(arrays[i])
    for place in np.ndindex(arrays[i].shape):
        h = step * max(1.0, abs(float(arrays[i][place])))
        ends: list[float] = []
        for moved in (h, -h):
            changed = arrays[i].copy()
            changed[place] += moved
            ends.append(runner.value([*arrays[:i], changed, *arrays[i + 1 :]]))
        slopes[place] = (ends[0] - ends[1]) / (2 * h)
    return slopes


def _compare(found: Array, expected: Array, rtol: float, atol: float, what: str) -> None:
    """Compares elementwise; the tolerance includes rounding noise at the gradient's scale."""
    if not expected.size:
        return
    scale = float(np.max(np.abs(expected)))
    excess = np.abs(found - expected) - (atol + rtol * np.maximum(np.abs(expected), 0.1 * scale))
    bad = ~(excess <= 0)  # NaN is a mismatch
    if not bad.any():
        return
    worst = np.unravel_index(
        int(np.argmax(np.where(np.isnan(excess), np.inf, excess))), excess.shape
    )
    place = ", ".join(str(int(i)) for i in worst)
    raise MismatchError(
        f"check_gradients: {what} differs in {int(bad.sum())} of {bad.size} elements, most at"
        f" [{place}]: expected {expected[worst]:.10g} by central differences,"
        f" got {found[worst]:.10g}"
    )
