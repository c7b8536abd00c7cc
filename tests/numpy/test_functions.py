"""Every function against NumPy: values, shapes and dtypes over random shapes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import at_most

import weft.numpy as wnp
from tests.numpy.numpy_case import check_gradient, draw, same

UNARY = [
    "abs", "acos", "asin", "asinh", "atan", "atanh", "cbrt", "ceil", "cos", "cosh", "deg2rad",
    "exp", "exp2", "expm1", "fix", "floor", "isfinite", "isinf", "isnan", "isneginf", "isposinf",
    "log", "log10", "log1p", "log2", "logical_not", "nan_to_num", "negative", "positive",
    "rad2deg", "reciprocal", "round", "sign", "signbit", "sin", "sinc", "sinh", "sqrt", "square",
    "tan", "tanh", "trunc", "real", "imag", "conj", "angle", "iscomplex", "isreal",
]  # fmt: skip
COMPLEX = [
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "expm1",
    "isfinite", "log", "log10", "log1p", "log2", "negative", "reciprocal", "sign", "sin", "sinh",
    "sqrt", "square", "tan", "tanh", "real", "imag", "conj", "angle",
]  # fmt: skip
BINARY = [
    "add", "atan2", "copysign", "divide", "equal", "floor_divide", "fmax", "fmin", "fmod",
    "greater", "greater_equal", "heaviside", "hypot", "less", "less_equal", "logaddexp",
    "logaddexp2", "logical_and", "logical_or", "logical_xor", "maximum", "minimum", "multiply",
    "nextafter", "not_equal", "pow", "remainder", "subtract", "float_power",
]  # fmt: skip
BITS = ["bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift"]
SHAPES = st.lists(st.integers(0, 4), max_size=3).map(tuple)


@at_most(60)
@given(st.sampled_from(UNARY), SHAPES, st.sampled_from(["float32", "float64"]), st.integers(0, 9))
def test_of_one(name, shape, dtype, seed):
    x = draw(np.random.default_rng(seed), shape, dtype)
    same(getattr(wnp, name)(wnp.asarray(x)), getattr(np, name)(x), 1e-5, 1e-6)


@pytest.mark.parametrize("name", COMPLEX)
def test_of_one_complex(name):
    z = draw(np.random.default_rng(0), (2, 3), "complex128")
    same(getattr(wnp, name)(wnp.asarray(z)), getattr(np, name)(z))
    if name != "isfinite":
        check_gradient(getattr(wnp, name), z)


@at_most(60)
@given(st.sampled_from(BINARY), SHAPES, st.integers(0, 3), st.sampled_from(["float32", "float64"]))
def test_of_two(name, shape, kept, dtype):
    rng = np.random.default_rng(0)
    x, y = draw(rng, shape, dtype), draw(rng, shape[min(kept, len(shape)) :], dtype)
    same(getattr(wnp, name)(wnp.asarray(x), wnp.asarray(y)), getattr(np, name)(x, y), 1e-5, 1e-6)


@pytest.mark.parametrize("name", BITS)
@pytest.mark.parametrize("dtype", ["int32", "uint8"])
def test_of_bits(name, dtype):
    x, y = (draw(np.random.default_rng(s), (5,), dtype) for s in (0, 1))
    same(getattr(wnp, name)(wnp.asarray(x), wnp.asarray(y)), getattr(np, name)(x, y))


TALL = draw(np.random.default_rng(2), (3, 4))
CUBE = draw(np.random.default_rng(3), (2, 3, 4))
ROW = draw(np.random.default_rng(4), (4,))
WHOLE = np.array([[3, 1, 2], [1, 0, 3]])
INDEX = np.array([2, 0, 0])
# name, arguments, options; an array among the arguments is given as one, and NumPy's name is the
# same unless an option `numpy` says another
TABLE = [
    *[(n, (x,), o) for n in ("sum", "prod", "mean", "std", "var", "max", "min", "ptp", "median")
      for x, o in ((TALL, {}), (TALL, {"axis": 1}), (CUBE, {"axis": -1}))],
    *[(n, (x,), o) for n in ("sum", "prod", "mean", "std", "var", "max", "min", "any", "all")
      for x, o in ((CUBE, {"axis": (0, 2), "keepdims": True}), (WHOLE, {"axis": 0}))],
    *[("sum", (draw(np.random.default_rng(0), (3,), d),), {}) for d in ("bool", "int8", "uint8")],
    ("std", (CUBE,), {"axis": 1, "ddof": 1}), ("var", (ROW,), {"ddof": 1}),
    ("std", (draw(np.random.default_rng(1), (4,), "complex128"),), {}),
    ("max", (draw(np.random.default_rng(1), (2, 4), "complex128"),), {"axis": 1}),
    ("average", (TALL,), {"axis": 0, "weights": np.array([1.0, 2.0, 3.0])}),
    ("nansum", (np.array([1, np.nan, 2]),), {}), ("nanmean", (np.array([1, np.nan, 2]),), {}),
    ("quantile", (TALL, 0.3), {"axis": 0}), ("percentile", (TALL, 30), {}),
    ("count_nonzero", (WHOLE,), {"axis": 0}), ("argmax", (TALL,), {"axis": 0}),
    ("argmin", (TALL,), {}), ("argmax", (CUBE,), {"axis": 1, "keepdims": True}),
    ("cumsum", (TALL,), {}), ("cumsum", (TALL,), {"axis": 1}), ("cumprod", (TALL,), {"axis": 0}),
    ("cumulative_sum", (TALL,), {"axis": 1, "include_initial": True}),
    ("cumulative_prod", (ROW,), {"include_initial": True}),
    ("diff", (TALL,), {}), ("diff", (TALL,), {"n": 2, "axis": 0}), ("ediff1d", (TALL,), {}),
    ("diff", (ROW,), {"prepend": np.array([0.0]), "append": np.array([1.0])}),
    ("gradient", (ROW, 0.5), {}), ("gradient", (TALL,), {}),
    ("gradient", (CUBE,), {"axis": (0, 2)}),
    ("trapezoid", (TALL,), {"dx": 0.5}), ("trapezoid", (ROW, np.array([0, 1.0, 3, 4])), {}),
    ("sort", (TALL,), {}), ("sort", (TALL,), {"axis": 0}), ("argsort", (TALL,), {"axis": 0}),
    ("sort", (TALL,), {"axis": None}), ("searchsorted", (np.sort(ROW), TALL), {"side": "right"}),
    ("digitize", (ROW, np.array([0.3, 0.6])), {}), ("bincount", (WHOLE[0],), {}),
    ("where", (WHOLE > 1, WHOLE, 0), {}), ("nonzero", (WHOLE,), {}), ("argwhere", (WHOLE,), {}),
    ("flatnonzero", (WHOLE,), {}), ("isin", (WHOLE, np.array([1, 3])), {}),
    ("choose", (INDEX, [ROW[:3], ROW[1:], TALL[0, :3]]), {}),
    ("select", ([ROW > 0.5, ROW > 0.3], [ROW, -ROW]), {"default": 7.0}),
    ("take", (TALL, INDEX), {"axis": 0}), ("take", (TALL, INDEX), {}),
    ("take_along_axis", (TALL, np.array([[2, 0, 0, 1]])), {"axis": 0}),
    ("unique", (WHOLE,), {"return_inverse": True, "return_counts": True}),
    ("unique_all", (WHOLE,), {}), ("unique_counts", (WHOLE,), {}),
    ("unique_inverse", (WHOLE,), {}),
    ("reshape", (CUBE, (4, -1)), {}), ("reshape", (CUBE, (4, 6)), {"order": "F"}),
    ("ravel", (CUBE,), {}), ("expand_dims", (TALL, (0, 3)), {}), ("squeeze", (TALL[:1],), {}),
    ("transpose", (CUBE,), {}), ("transpose", (CUBE, (1, 0, 2)), {}),
    ("matrix_transpose", (CUBE,), {}), ("moveaxis", (CUBE, 0, 2), {}),
    ("swapaxes", (CUBE, 0, 1), {}),
    ("rollaxis", (CUBE, 2), {}), ("rollaxis", (CUBE, 0, 3), {}),
    ("broadcast_to", (ROW, (3, 4)), {}), ("concatenate", ([TALL, TALL],), {"axis": 1}),
    ("concatenate", ([TALL, ROW],), {"axis": None}), ("stack", ([TALL, TALL],), {"axis": -1}),
    ("hstack", ([ROW, ROW],), {}), ("vstack", ([ROW, ROW],), {}), ("dstack", ([TALL, TALL],), {}),
    ("column_stack", ([ROW, ROW],), {}), ("append", (TALL, ROW), {}),
    ("split", (TALL, 2), {"axis": 1}), ("array_split", (TALL, 3), {"axis": 1}),
    ("hsplit", (TALL, [1, 3]), {}), ("vsplit", (TALL, 3), {}), ("dsplit", (CUBE, 2), {}),
    ("unstack", (CUBE,), {"axis": 1}), ("tile", (TALL, (2, 1)), {}), ("tile", (ROW, 2), {}),
    ("repeat", (TALL, 2), {}), ("repeat", (TALL, [1, 0, 2]), {"axis": 0}), ("flip", (CUBE,), {}),
    ("flip", (CUBE,), {"axis": (0, 2)}), ("fliplr", (TALL,), {}), ("flipud", (TALL,), {}),
    ("roll", (TALL, 2), {}), ("roll", (TALL, (1, 2)), {"axis": (0, 1)}), ("rot90", (TALL,), {}),
    ("roll", (TALL, (1, 1)), {"axis": 1}),
    ("diag", (TALL,), {}), ("diag", (ROW,), {"k": 1}), ("diagonal", (CUBE,), {"offset": 1}),
    ("vander", (ROW,), {"N": 3}), ("tril", (CUBE,), {"k": 1}), ("triu", (TALL,), {"k": -1}),
    *[("pad", (TALL, ((1, 2), (0, 3))), {"mode": m})
      for m in ("constant", "edge", "reflect", "symmetric", "wrap")],
    ("pad", (ROW, 2), {"constant_values": 5.0}),
    ("matmul", (CUBE, TALL.T), {}), ("matmul", (TALL, ROW), {}), ("dot", (TALL, ROW), {}),
    ("dot", (CUBE, CUBE.transpose(0, 2, 1)), {}), ("dot", (TALL, 2.0), {}),
    ("inner", (CUBE, TALL), {}), ("vdot", (TALL, TALL), {}), ("vecdot", (CUBE, TALL), {}),
    ("outer", (ROW, ROW), {}), ("kron", (TALL, ROW), {}),
    ("tensordot", (CUBE, TALL.T), {"axes": 1}),
    ("tensordot", (CUBE, CUBE), {"axes": ((0, 1), (0, 1))}),
    ("cross", (TALL[:, :3], TALL[:, 1:]), {}), ("trace", (CUBE,), {"offset": 1}),
    ("einsum", ("ijk,lk->lij", CUBE, TALL), {}), ("einsum", ("ii", TALL[:, :3]), {}),
    ("einsum", ("...i,...i", CUBE, TALL), {}),
    ("clip", (TALL, 0.4, 0.6), {}), ("clip", (TALL, None, ROW), {}), ("round", (TALL, 1), {}),
    ("atleast_1d", (2.0,), {}), ("atleast_2d", (ROW,), {}), ("atleast_3d", (TALL,), {}),
    ("linspace", (0, 3, 4), {}), ("linspace", (0, 3, 4), {"endpoint": False}),
    ("logspace", (0, 2, 3), {}), ("geomspace", (1, 8, 4), {}), ("arange", (5,), {}),
    ("arange", (1, 2, 0.25), {}), ("arange", (3, 0), {}), ("eye", (2, 3), {"k": 1}),
    ("tri", (3,), {"k": -1}), ("identity", (2,), {}), ("indices", ((2, 3),), {}),
    ("full", ((2, 2), 7), {}), ("full_like", (TALL, 2), {}), ("zeros_like", (WHOLE,), {}),
    ("meshgrid", (ROW, ROW[:2]), {}), ("meshgrid", (ROW, ROW[:2]), {"indexing": "ij"}),
    ("broadcast_arrays", (TALL, ROW), {}), ("tril_indices", (3,), {}), ("triu_indices", (3, 1), {}),
    ("array_equal", (TALL, TALL), {}), ("array_equiv", (ROW, TALL), {}),
    ("allclose", (TALL, TALL + 1e-9), {}),
    ("isclose", (TALL, TALL + 1), {}), ("shape", (CUBE,), {}), ("ndim", (CUBE,), {}),
    ("size", (CUBE, 1), {}),
    ("real_if_close", (TALL + 1e-20j,), {}), ("iscomplexobj", (TALL,), {}),
    ("isscalar", (2.5,), {}),
]  # fmt: skip


def lifted(x):
    if isinstance(x, np.ndarray):
        return wnp.asarray(x)
    return [lifted(v) for v in x] if isinstance(x, list) else x


@pytest.mark.parametrize(("name", "args", "options"), TABLE, ids=[t[0] for t in TABLE])
def test_against_numpy(name, args, options):
    found = getattr(wnp, name)(*map(lifted, args), **{k: lifted(v) for k, v in options.items()})
    same(found, getattr(np, name)(*args, **options))


SMOOTH = [
    "sum", "prod", "mean", "std", "var", "max", "median", "average", "quantile", "cumsum",
    "cumprod", "cumulative_sum", "diff", "gradient", "trapezoid", "sort", "take",
    "take_along_axis", "reshape", "transpose", "moveaxis", "broadcast_to", "tile", "repeat",
    "flip", "roll", "rot90", "diag", "diagonal", "tril", "matmul", "dot", "inner", "vecdot",
    "outer", "kron", "tensordot", "cross", "trace", "clip", "pad", "vander", "ptp",
]  # fmt: skip


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients(name):
    _, args, options = next(t for t in TABLE if t[0] == name)
    moving = [i for i, x in enumerate(args) if isinstance(x, np.ndarray) and x.dtype == np.float64]

    def run(*xs):
        given = list(args)
        for i, x in zip(moving, xs, strict=True):
            given[i] = x
        found = getattr(wnp, name)(*given, **options)
        return tuple(found) if isinstance(found, list) else found

    check_gradient(run, *[args[i] for i in moving])


def test_subscripts_put_arrays_together():
    same(wnp.r_[lifted(ROW), 1.0, 0:3], np.r_[ROW, 1.0, 0:3])
    same(wnp.r_[0:1:5j], np.r_[0:1:5j])
    same(wnp.c_[lifted(ROW), lifted(TALL.T)], np.c_[ROW, TALL.T])
    check_gradient(lambda x: wnp.r_[x, ROW], ROW)
    same(wnp.make_diagonal(lifted(ROW)), np.diag(ROW))
    same(wnp.einsum(lifted(TALL), [0, 1], lifted(ROW), [1], [0]), TALL @ ROW)


def test_arrays_of_arrays_have_gradients():
    check_gradient(lambda x: wnp.array([[x[0] * x[1], 1.0], [2.0, x[2]]]), ROW)
    check_gradient(lambda a, b: wnp.linspace(a, b, 5), np.array(0.5), np.array(2.0))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "uint16", "uint32", "uint64"])
def test_products_of_integers_keep_their_type(dtype):
    x = (draw(np.random.default_rng(0), (3, 3), dtype) * 97).astype(dtype)
    same(wnp.asarray(x) @ wnp.asarray(x), x @ x)
    same(wnp.tensordot(wnp.asarray(x), wnp.asarray(x), axes=1), np.tensordot(x, x, 1))


@pytest.mark.parametrize("axis", [0, 1])
def test_statistics_of_any_type(axis):
    x = np.random.default_rng(3).normal(size=(4, 5)) * 5
    for dtype in ("int8", "int32", "float32", "float64"):
        y = wnp.asarray(x.astype(dtype))
        wide = x.astype(dtype).astype("float64")
        for found, expected in (
            (wnp.trapezoid(y, axis=axis), np.trapezoid(wide, axis=axis)),
            (wnp.gradient(y, 0.5, axis=axis), np.gradient(wide, 0.5, axis=axis)),
            (wnp.average(y, axis, np.arange(x.shape[axis])), None),
        ):
            if expected is None:
                expected = np.average(wide, axis, np.arange(x.shape[axis]))
            np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-5)
    holds = x > 0
    same(wnp.trapezoid(wnp.asarray(holds), axis=axis), np.trapezoid(holds, axis=axis), 1e-6, 0)
    gaps = np.where(holds, x, np.nan).astype("float32")
    same(wnp.nanmean(wnp.asarray(gaps), axis), np.nanmean(gaps, axis), 1e-5, 1e-6)
