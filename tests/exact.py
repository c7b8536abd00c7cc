"""Elementwise functions in higher precision, and errors in units in the last place.

Errors are counted in units in the last place of the exact result, so that a small one must be as
exact as a large one.
"""

import math

import ml_dtypes
import numpy as np
import scipy.special

Wide = np.longdouble
PI = Wide("3.14159265358979323846264338327950288")
DTYPES = {
    "float32": np.float32, "float64": np.float64, "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
}  # fmt: skip


def _sinc(x):
    whole = np.rint(x)
    sine = np.sin(PI * (x - whole)) * np.where(np.mod(whole, 2) != 0, -1, 1)
    return np.where(x == 0, 1, sine / (PI * x))


def _logit(x):
    return np.where(np.abs(2 * x - 1) < 0.5, 2 * np.arctanh(2 * x - 1), np.log(x) - np.log1p(-x))


def _sigmoid(x):
    return np.where(x < 0, np.exp(x), 1) / (1 + np.exp(-np.abs(x)))


def _softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _narrow(function):
    """A function that SciPy computes in float64."""
    return lambda *xs: function(*[x.astype(np.float64) for x in xs])


ONE = {
    name: getattr(np, name)
    for name in (
        "exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "sin", "cos", "tan", "arcsin",
        "arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh", "sqrt", "cbrt",
        "reciprocal", "square", "floor", "ceil", "rint", "trunc", "sign", "abs", "negative",
    )
}  # fmt: skip
ONE |= {
    "rsqrt": lambda x: 1 / np.sqrt(x), "sigmoid": _sigmoid, "softplus": _softplus,
    "log_sigmoid": lambda x: -_softplus(-x), "sinc": _sinc, "logit": _logit,
    "deg2rad": lambda x: x * (PI / 180), "rad2deg": lambda x: x * (180 / PI),
    "softsign": lambda x: x / (1 + np.abs(x)), "swish": lambda x: x * _sigmoid(x),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
}  # fmt: skip
SPECIAL = {
    name: _narrow(getattr(scipy.special, name))
    for name in (
        "erf", "erfc", "erfinv", "digamma", "ndtr", "log_ndtr", "entr", "i0", "i0e", "i1", "i1e",
        "gamma", "rgamma", "gammaln",
    )
}  # fmt: skip
TWO = {
    name: getattr(np, name)
    for name in (
        "add", "subtract", "multiply", "divide", "power", "arctan2", "hypot", "logaddexp",
        "logaddexp2", "copysign", "maximum", "minimum", "fmax", "fmin", "heaviside", "fmod",
    )
}  # fmt: skip
TWO |= {
    "squared_difference": lambda x, y: (x - y) ** 2,
    "div_no_nan": lambda x, y: np.where(y == 0, 0, x / y),
    "multiply_no_nan": lambda x, y: np.where(y == 0, 0, x * y),
    "truncatemod": np.fmod,
}
SPECIAL_TWO = {
    name: _narrow(getattr(scipy.special, name)) for name in ("xlogy", "xlog1py", "beta", "betaln")
}
CANCELLING = ("logaddexp", "logaddexp2")  # exact relative to the summands


# Errors in float64 near zeros, where terms cancel here or in SciPy
LOOSE = {"gammaln": 1e7, "digamma": 1e5, "betaln": 1e5}


def points(dtype, count=300, seed=0):
    """Numbers of a type from the smallest to the largest, around 0 and 1, and the special ones."""
    rng, limits = np.random.default_rng(seed), ml_dtypes.finfo(dtype)
    low, high = math.log2(float(limits.smallest_normal)), math.log2(float(limits.max))
    parts = [
        2.0 ** rng.uniform(low, high * 0.999, count), 2.0 ** rng.uniform(-12, 6, count),
        rng.uniform(0, 10, count), rng.uniform(0, 1, count), 1 + rng.uniform(-0.01, 0.01, count),
    ]  # fmt: skip
    signed = np.concatenate(parts) * rng.choice([-1, 1], 5 * count)
    ends = [float(limits.max), float(limits.smallest_normal), np.inf, 0.0, 1.0, 2.0, 0.5, 3.0]
    ends += [float(limits.smallest_subnormal), float(limits.smallest_normal) / 3]
    return np.concatenate([signed, ends, np.negative(ends), [np.nan]]).astype(dtype)


def pairs(dtype):
    """Every one of some numbers beside every other one."""
    a, b = points(dtype, 8, 1), points(dtype, 8, 2)
    return [x.ravel() for x in np.meshgrid(a, b)]


def errors(found, function, args, cancelling=False):
    """The error of each element in units in the last place of the exact result."""
    limits = ml_dtypes.finfo(found.dtype)
    with np.errstate(all="ignore"):
        exact = np.asarray(function(*[x.astype(Wide) for x in args])).astype(Wide)
        y, rounded = found.astype(Wide), exact.astype(np.float64).astype(found.dtype).astype(Wide)
        tiny = Wide(float(limits.smallest_normal))
        size = np.abs(exact)
        if cancelling:
            size = np.maximum(size, np.maximum(*[np.abs(x.astype(Wide)) for x in args]))
        power = np.floor(np.log2(np.clip(size, tiny, Wide(float(limits.max)))))
        error = np.abs(y - exact) / Wide(2) ** (power - limits.nmant)
    alike = (y == rounded) | (np.isnan(y) & np.isnan(exact))
    largest = Wide(float(limits.max)) * Wide(0.999)  # an overflow may be missed by a rounding
    alike |= (size >= largest) & (np.abs(y) >= largest) & (np.sign(y) == np.sign(exact))
    return np.where(alike, 0, np.where(np.isfinite(error), error, np.inf)).astype(np.float64)


def defined(name, args):
    """Where the conventions of SciPy are not in question."""
    wide = np.array([x.astype(np.float64) for x in args])
    if name.startswith("beta"):  # it has its own limits at poles and at infinity
        return np.all((wide >= 2.0**-1022) & (wide < 1e100), axis=0)
    if name == "log_ndtr":  # SciPy's is 0 where it is subnormal
        return wide[0] < 37
    if name == "rgamma":  # its sign is lost far below
        return wide[0] > -1e10
    if name == "gammaln":  # SciPy's of some subnormal numbers is infinite
        return np.isfinite(wide[0]) & (np.abs(wide[0]) >= 2.0**-1022)
    return np.isfinite(wide[0]) if name in ("i0", "i1") else None


def check(name, found, function, args, limit, where=None):
    """Compare results with those of `function`, in units in the last place."""
    wrong = errors(found, function, args, name in CANCELLING)
    wrong = wrong if where is None else np.where(where, wrong, 0)
    worst = int(np.argmax(wrong))
    at = ", ".join(repr(float(x[worst])) for x in args)
    assert wrong[worst] <= limit, (
        f"{name}({at}) of {found.dtype} gives {float(found[worst])!r}, {wrong[worst]:.3g} ulps off"
    )
