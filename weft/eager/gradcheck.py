"""Gradients of functions of tensors against central differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.eager.autograd import grad
from weft.eager.call import leaf, wrap
from weft.eager.handle import Handle
from weft.eager.lazy import Array
from weft.errors import GradientError, MismatchError
from weft.ir.dtype import complex128, float64
from weft.ops.base import at_user_line

Function = Callable[..., Any]


def gradcheck(
    func: Function,
    inputs: Any,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
) -> bool:
    """Whether the gradients of `func` agree with central differences.

    Of complex numbers, real and imaginary parts are moved and compared, each for itself.

    Args:
        func: from tensors to a tensor or several.
        inputs: its arguments; those that need gradients have to be float64 or complex128, whose
            digits suffice.
        eps: how far each element is moved.
        raise_exception: raise where they do not agree, instead of returning `False`.

    Raises:
        MismatchError: a gradient differs.
        GradientError: no input needs a gradient, or one has too few digits.

    Example:
        >>> import weft as wf
        >>> x = wf.rand(3, dtype=wf.float64, requires_grad=True)
        >>> wf.autograd.gradcheck(wf.tanh, x)
        True
    """
    args = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
    places = _checked(args)
    outputs = _several(func(*args))
    for number, y in enumerate(outputs):
        if not y.lazy.tracked:
            continue
        slopes = _differences(lambda *xs, n=number: _several(func(*xs))[n], args, places, eps)
        for place, expected in zip(places, slopes, strict=True):
            found = _jacobian(y, args[place])
            if not np.allclose(found, expected, rtol, atol):
                sizes = (y.numel(), args[place].numel())
                return _differs(number, place, sizes, found, expected, raise_exception)
    return True


def gradgradcheck(
    func: Function,
    inputs: Any,
    grad_outputs: Any = None,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
) -> bool:
    """`gradcheck` of the gradients of `func`, times fixed random numbers or `grad_outputs`."""
    args = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
    places = _checked(args)
    ys = [y for y in _several(func(*args)) if y.lazy.tracked]
    random = np.random.default_rng(0)

    def drawn(y: Any) -> Any:
        parts = random.uniform(0.5, 1.5, (2, *y.shape))
        return wrap(leaf(np.asarray(parts[0] + 1j * parts[1] if y.is_complex() else parts[0])))

    given = list(map(drawn, ys)) if grad_outputs is None else _several(grad_outputs)

    def slopes(*xs: Any) -> tuple[Any, ...]:
        found = [y for y in _several(func(*xs)) if y.lazy.tracked]
        wanted = [xs[i] for i in places]
        gs = grad(found, wanted, given, create_graph=True, allow_unused=True)
        return tuple([g for g in gs if g is not None and g.lazy.tracked])

    return gradcheck(slopes, args, eps, atol, rtol, raise_exception)


def _several(found: Any) -> list[Any]:
    return list(found) if isinstance(found, list | tuple) else [found]


def _checked(args: Sequence[Any]) -> list[int]:
    """Which arguments need gradients."""
    places = [i for i, x in enumerate(args) if isinstance(x, Handle) and x.lazy.tracked]
    if not places:
        text = f"gradcheck: expected an input with requires_grad=True{at_user_line()}"
        raise GradientError(text)
    for i in places:
        dtype = args[i].dtype
        if dtype not in (float64, complex128):
            wide = complex128 if dtype.is_complex else float64
            raise GradientError(
                f"gradcheck: expected input {i} of {wide}, whose digits suffice for differences, "
                f"got {dtype}; create it with dtype={wide}{at_user_line()}"
            )
    return places


def _jacobian(y: Any, x: Any) -> Array:
    """Gradients of each element of `y` by each of `x`: a matrix, see `_parts`."""
    rows: list[Array] = []
    size = y.numel()
    for unit in (1, 1j) if y.is_complex() else (1.0,):
        for i in range(size):
            start = np.zeros(size, y.dtype.numpy)
            start[i] = unit
            cotangent = wrap(leaf(start.reshape(y.shape)))
            (g,) = grad(y, x, cotangent, retain_graph=True, allow_unused=True)
            found = np.zeros(x.shape, x.dtype.numpy) if g is None else g.detach().numpy()
            rows.append(_parts(found))
    return np.array(rows).reshape(len(rows), x.numel() * (1 + x.is_complex()))


def _parts(x: Array) -> Array:
    """The elements as a vector of real numbers: all real parts, then all imaginary ones."""
    flat = x.reshape(-1)
    return np.concatenate([np.real(flat), np.imag(flat)]) if np.iscomplexobj(flat) else flat


def _differences(
    func: Function, args: Sequence[Any], places: Sequence[int], eps: float
) -> list[Array]:
    """The same matrix for each place, by central differences."""
    arrays = [x.array if isinstance(x, Handle) else x for x in args]

    def value(place: int, moved: Array) -> Array:
        xs = [wrap(leaf(moved)).requires_grad_() if i == place else x for i, x in enumerate(args)]
        return _parts(np.array(func(*xs).detach().numpy()))

    found: list[Array] = []
    for place in places:
        columns: list[Array] = []
        for unit in (1, 1j) if np.iscomplexobj(arrays[place]) else (1,):
            for index in np.ndindex(*arrays[place].shape):
                ends: list[Array] = []
                for step in (eps * unit, -eps * unit):
                    moved = np.array(arrays[place])
                    moved[index] += step
                    ends.append(value(place, moved))
                columns.append((ends[0] - ends[1]) / (2 * eps))
        found.append(np.array(columns).reshape(len(columns), -1).T)
    return found


def _differs(
    number: int,
    place: int,
    sizes: tuple[int, int],
    found: Array,
    expected: Array,
    raise_exception: bool,
) -> bool:
    if not raise_exception:
        return False
    worst = np.unravel_index(int(np.argmax(np.abs(found - expected))), found.shape)
    elements = f"{int(worst[0]) % sizes[0]} and {int(worst[1]) % sizes[1]}"
    raise MismatchError(
        f"gradcheck: the gradient of output {number} by input {place} differs, most for elements "
        f"{elements}: expected {expected[worst]:.10g} by central differences, got "
        f"{found[worst]:.10g}{at_user_line()}"
    )
