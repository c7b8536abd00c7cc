"""Shared by the array tests: comparison with NumPy, and gradients by finite differences."""

import numpy as np

import weft.numpy as wnp
from weft import func


def plain(x):
    """A result as NumPy has it."""
    if isinstance(x, wnp.ndarray):
        return x.detach().numpy()
    if isinstance(x, tuple | list):
        return [plain(v) for v in x]
    return x


def same(found, expected, rtol=1e-6, atol=0.0):
    """Whether results are equal in value, shape and element type."""
    if isinstance(expected, tuple | list):
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            same(a, b, rtol, atol)
        return
    a, b = np.asarray(plain(found)), np.asarray(expected)
    assert a.dtype == b.dtype, (a.dtype, b.dtype)
    np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


def draw(rng, shape, dtype="float64"):
    """Numbers of a type that no function of the tables is singular at."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if kind in "iu":
        return rng.integers(1, 5, shape).astype(dtype)
    x = rng.uniform(0.2, 0.9, shape)
    return (x + 1j * rng.uniform(-0.5, 0.5, shape) if kind == "c" else x).astype(dtype)


def _pairing(gs, xs):
    return sum(float(np.sum(np.asarray(g) * x).real) for g, x in zip(gs, xs, strict=True))


def check_gradient(function, *arrays, eps=1e-6, tolerance=2e-6, order=1):
    """Compare the gradient along a random direction with a difference quotient.

    Results may be tuples; of complex numbers a cotangent `g` is paired as the real part of
    `sum(g * dz)`.
    """
    rng = np.random.default_rng(1)

    def direction(x):
        v = rng.normal(size=x.shape)
        return v + 1j * rng.normal(size=x.shape) if np.iscomplexobj(x) else v

    def run(xs):
        found = function(*xs)
        return found if isinstance(found, tuple) else (found,)

    def moved(step):
        at = [wnp.asarray(x + step * v) for x, v in zip(arrays, along, strict=True)]
        return [plain(y) for y in run(at)]

    along = [direction(x) for x in arrays]
    pull, ys = func.make_vjp(lambda *xs: tuple(run(xs)), tuple(range(len(arrays))))(
        *[wnp.asarray(x) for x in arrays]
    )
    gs = [direction(plain(y)) for y in ys]
    found = [plain(g) for g in pull(tuple(wnp.asarray(g) for g in gs))]
    slopes = [(a - b) / (2 * eps) for a, b in zip(moved(eps), moved(-eps), strict=True)]
    exact, numeric = _pairing(found, along), _pairing(gs, slopes)
    assert abs(exact - numeric) <= tolerance * max(1, abs(numeric)), (exact, numeric)
    if order > 1:
        weights = [wnp.asarray(g) for g in gs]

        def gradient(*xs):
            return tuple(func.make_vjp(lambda *zs: tuple(run(zs)), tuple(range(len(xs))))(*xs)[0](tuple(weights)))  # fmt: skip  # noqa: E501

        check_gradient(gradient, *arrays, eps=eps, tolerance=tolerance * 10, order=order - 1)
