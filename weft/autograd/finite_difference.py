"""Compares derivatives of a function at one point with central differences."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.autograd.forward_ad import dual_level, make_dual, unpack_dual
from weft.autograd.gradient import grad
from weft.eager.functions.creation.constructor import zeros_like
from weft.eager.functions.shape.joining import stack
from weft.eager.functions.shape.reshape import detach
from weft.eager.record.pending.lazy import Array
from weft.eager.record.pending.mode import no_grad
from weft.eager.tensor.dispatch import leaf, wrap
from weft.eager.tensor.handle import Handle
from weft.errors import GradcheckError, GradientError, WeftError
from weft.func.vmap import vmap
from weft.ir.dtype import DType, complex128, float64
from weft.ir.node import at_user_line

Function = Callable[..., Any]
ROUNDING = 64 * np.finfo(np.float64).eps
"""Allowed relative difference between an interpreted and a compiled result."""


def tensors_of(found: Any) -> list[Any]:
    """The tensors that a function returned, as a list."""
    ys = list(found) if isinstance(found, list | tuple) else [found]
    return [y for y in ys if isinstance(y, Handle)]


def positions(args: Sequence[Any]) -> list[int]:
    """The positions of the arguments that require grad."""
    places = [i for i, x in enumerate(args) if isinstance(x, Handle) and x.lazy.tracked]
    if not places:
        text = f"gradcheck: expected an input with requires_grad=True{at_user_line()}"
        raise GradientError(text)
    for i in places:
        dtype: DType = args[i].dtype
        if dtype not in (float64, complex128):
            wide = complex128 if dtype.is_complex else float64
            warnings.warn(
                f"gradcheck: expected input {i} of {wide}, whose digits suffice for differences, "
                f"got {dtype}; create it with dtype={wide}{at_user_line()}",
                stacklevel=3,
            )
    return places


def _parts(x: Array) -> Array:
    """The elements as a vector of real numbers: all real parts, then all imaginary ones."""
    flat = x.reshape(-1)
    return np.concatenate([flat.real, flat.imag]) if np.iscomplexobj(flat) else flat


def _whole(parts: Array, like: Any) -> Any:
    """A tensor with the shape and dtype of another, from the parts of its elements."""
    flat = parts
    if like.is_complex():
        size = like.numel()
        flat = parts[:size] + 1j * parts[size:]
    return wrap(leaf(np.array(flat.reshape(like.shape), like.dtype.numpy)))


def _dims(x: Any) -> int:
    return x.numel() * (1 + x.is_complex())


@dataclass
class Comparison:
    """One function at one point.

    A derivative is compared as `rows @ jacobian @ columns.T`: elementwise with unit matrices, or
    with one random row and column.
    """

    func: Function
    args: list[Any]
    places: list[int]
    eps: float
    atol: float
    rtol: float
    fast: bool

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(0)
        self._call()
        self.rows = [self._directions(y) for _, y in self.outputs]
        self.columns = [self._directions(self.args[i]) for i in self.places]
        self.expected: list[list[Array]] = []

    def _call(self) -> None:
        """Compute the outputs to be checked."""
        found = tensors_of(self.func(*self.args))
        self.outputs = [(n, y) for n, y in enumerate(found) if y.lazy.tracked]
        self.inert = not self.outputs
        if self.inert:
            self.outputs = [(n, y) for n, y in enumerate(found) if y.dtype.is_inexact]

    def _directions(self, x: Any) -> Array:
        size = _dims(x)
        return self.random.uniform(0.1, 1, (1, size)) if self.fast else np.eye(size)

    def numbers(self) -> None:
        """Compute the expected derivatives of each output by central differences."""
        for place, columns in zip(self.places, self.columns, strict=True):
            moved = [self._moved(place, column) for column in columns]
            self.expected.append(
                [
                    rows @ np.array([m[k] for m in moved]).reshape(len(moved), rows.shape[1]).T
                    for k, rows in enumerate(self.rows)
                ]
            )
        self._call()  # the earlier outputs belong to the unperturbed inputs

    def _moved(self, place: int, column: Array) -> list[Array]:
        """The derivative of each output's parts along a direction."""
        point = np.array(_parts(self.args[place].detach().numpy()))
        ends: list[list[Array]] = []
        try:
            for step in (self.eps, -self.eps):
                self._put(place, point + step * column)
                ends.append(self._values())
        finally:
            self._put(place, point)
        return [(b - a) / (2 * self.eps) for b, a in zip(*ends, strict=True)]

    def _put(self, place: int, parts: Array) -> None:
        """Change an input in place, so that a function that captures it sees the change."""
        x = self.args[place]
        with no_grad():
            x.copy_(_whole(parts, x))

    def _values(self) -> list[Array]:
        """The current parts of each output.

        Raises:
            AssertionError: one has another shape or dtype than at the unperturbed inputs.
        """
        ys = tensors_of(self.func(*self.args))
        for n, y in self.outputs:
            for what in ("shape", "dtype"):
                before, now = getattr(y, what), getattr(ys[n], what)
                if now != before:
                    raise AssertionError(
                        f"gradcheck: expected output {n} to have the {what} {before} wherever the "
                        f"inputs move, got {now}{at_user_line()}"
                    )
        return [_parts(np.array(ys[n].detach().numpy())) for n, _ in self.outputs]

    def _pulled(self, y: Any, place: int, cotangent: Array) -> Array:
        x = self.args[place]
        (g,) = grad(y, x, _whole(cotangent, y), retain_graph=True, allow_unused=True)
        return np.zeros(_dims(x)) if g is None else _parts(g.detach().numpy())

    def backward(self) -> None:
        """Check gradients; without one, zero is expected."""
        for k, (number, y) in enumerate(self.outputs):
            for i, place in enumerate(self.places):
                columns = self.columns[i]
                zero = np.zeros(columns.shape[1])
                found = np.array(
                    [zero if self.inert else self._pulled(y, place, row) for row in self.rows[k]]
                )
                found = found.reshape(len(self.rows[k]), columns.shape[1]) @ columns.T
                self._compare("gradient", number, place, found, self.expected[i][k])

    def repeated(self, tolerance: float, types: bool) -> None:
        """Check that another backward pass gives the same, and the right dtypes."""
        for number, y in () if self.inert else self.outputs:
            cotangent = self._cotangent(y)
            for place in self.places:
                x = self.args[place]
                (g,) = grad(y, x, _whole(cotangent, y), retain_graph=True, allow_unused=True)
                if types and g is not None and g.dtype is not x.dtype:
                    raise GradcheckError(
                        f"gradcheck: expected the gradient of input {place} in {x.dtype}, got "
                        f"{g.dtype}{at_user_line()}"
                    )
                one = np.zeros(_dims(x)) if g is None else _parts(g.detach().numpy())
                other = self._pulled(y, place, cotangent)
                rounding = ROUNDING * np.abs(one).max(initial=0)
                if np.abs(one - other).max(initial=0) > tolerance + rounding:
                    raise GradcheckError(
                        f"gradcheck: two backward passes from output {number} give input {place} "
                        f"other gradients; nondet_tol says how far they may differ{at_user_line()}"
                    )

    def linear(self, together: bool) -> None:
        """Check that gradients are linear: zero for zero; `together`, the sum over the outputs."""
        if self.inert:
            return
        for number, y in self.outputs:
            for place in self.places:
                if np.abs(self._pulled(y, place, np.zeros(_dims(y)))).max(initial=0) > 0:
                    raise GradcheckError(
                        f"gradcheck: expected a gradient of input {place} of zero where nothing "
                        f"flows into output {number}; multiply by the gradient that backward is "
                        f"given{at_user_line()}"
                    )
        if not together or len(self.outputs) < 2:
            return
        ys = [y for _, y in self.outputs]
        given = [self._cotangent(y) for y in ys]
        for place in self.places:
            parts = [self._pulled(y, place, g) for y, g in zip(ys, given, strict=True)]
            wholes = [_whole(g, y) for y, g in zip(ys, given, strict=True)]
            (g,) = grad(ys, self.args[place], wholes, retain_graph=True, allow_unused=True)
            found = np.zeros_like(parts[0]) if g is None else _parts(g.detach().numpy())
            if not np.allclose(found, sum(parts), self.rtol, self.atol):
                raise GradcheckError(
                    f"gradcheck: expected the gradient of input {place} to be the sum of those of "
                    f"each output alone, the others undefined{at_user_line()}"
                )

    def _cotangent(self, y: Any) -> Array:
        return self.random.uniform(0.1, 1, _dims(y))

    def forward(self, batched: bool) -> None:
        """Check tangents."""
        for i, place in enumerate(self.places):
            moved = [self._pushed(place, column) for column in self.columns[i]]
            for k, (number, _) in enumerate(self.outputs):
                found = np.array([m[k] for m in moved]).reshape(len(moved), self.rows[k].shape[1])
                self._compare("tangent", number, place, self.rows[k] @ found.T, self.expected[i][k])
            if batched:
                self._batched_forward(place)

    def _tangents(self, place: int, tangent: Any) -> list[Any]:
        args = [detach(x) if isinstance(x, Handle) else x for x in self.args]
        with dual_level():
            for i in self.places:
                move = tangent if i == place else zeros_like(self.args[i])
                args[i] = make_dual(args[i], move)
            ys = tensors_of(self.func(*args))
            return [unpack_dual(ys[n]).tangent for n, _ in self.outputs]

    def _pushed(self, place: int, column: Array) -> list[Array]:
        tangents = self._tangents(place, _whole(column, self.args[place]))
        return [
            np.zeros(_dims(y)) if t is None else _parts(np.array(t.detach().numpy()))
            for t, (_, y) in zip(tangents, self.outputs, strict=True)
        ]

    def _batched_forward(self, place: int) -> None:
        columns = [self._cotangent(self.args[place]) for _ in range(2)]
        apart = [self._pushed(place, column) for column in columns]

        def tangents(t: Any) -> tuple[Any, ...]:
            found = self._tangents(place, t)
            pairs = zip(found, self.outputs, strict=True)
            return tuple([y.detach() * 0 if x is None else x for x, (_, y) in pairs])

        try:
            both = vmap(tangents)(stack([_whole(c, self.args[place]) for c in columns]))
        except WeftError as error:
            raise GradcheckError(f"gradcheck: vmap of the tangents failed: {error}") from error
        for k, (number, _) in enumerate(self.outputs):
            for n in range(2):
                found = _parts(both[k][n].detach().numpy())
                self._compare("batched tangent", number, place, found[None], apart[n][k][None])

    def batched(self) -> None:
        """Check that batched backward passes give the same as single ones."""
        for number, y in () if self.inert else self.outputs:
            rows = [self._cotangent(y) for _ in range(2)]
            cotangents = stack([_whole(row, y) for row in rows])
            for place in self.places:
                x = self.args[place]
                try:
                    (gs,) = grad(
                        y, x, cotangents, retain_graph=True, allow_unused=True,
                        is_grads_batched=True,
                    )  # fmt: skip
                except WeftError as error:
                    text = f"gradcheck: vmap of the backward pass failed: {error}"
                    raise GradcheckError(text) from error
                for n, row in enumerate(rows):
                    zero = np.zeros(_dims(x))
                    found = zero if gs is None else _parts(gs[n].detach().numpy())
                    expected = self._pulled(y, place, row)
                    self._compare("batched gradient", number, place, found[None], expected[None])

    def _compare(self, what: str, number: int, place: int, found: Array, expected: Array) -> None:
        if np.allclose(found, expected, self.rtol, self.atol):
            return
        at = np.unravel_index(int(np.argmax(np.abs(found - expected))), found.shape)
        y, x = dict(self.outputs)[number], self.args[place]
        where = f", most for elements {int(at[0]) % y.numel()} and {int(at[1]) % x.numel()}"
        by = "by central differences" if what in ("gradient", "tangent") else "one at a time"
        raise GradcheckError(
            f"gradcheck: the {what} of output {number} by input {place} differs"
            f"{'' if self.fast else where}: expected "
            f"{expected[at]:.10g} {by}, got {found[at]:.10g}{at_user_line()}"
        )
