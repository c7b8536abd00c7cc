"""Pooling, windows, transposed convolution and resampling against loops over pixels."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from composite import Row, check_compiled, check_slopes, check_values
from running import run

from weft import ops
from weft.errors import GraphError, ShapeError
from weft.ir.graph import Graph

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(0)
IMAGE = RNG.permutation(70).reshape(1, 7, 5, 2) / 10
LINE = RNG.permutation(18).reshape(2, 9, 1) / 4.0


def spans(size: int, k: int, s: int, p: int, d: int, ceil: bool) -> list[list[int]]:
    """Positions inside the image that each output of an axis sees, PyTorch's rules spelled out."""
    found: list[list[int]] = []
    start = -p
    while start + (k - 1) * d < size + p or (ceil and start < size and len(found) * s < size + p):
        if start + (k - 1) * d >= size + p and not ceil:
            break
        found.append([i for i in range(start, start + (k - 1) * d + 1, d) if 0 <= i < size])
        start += s
    return found


def pooled(x: Array, axes: list[list[list[int]]], reduce: Any) -> Array:
    """`reduce(values, pixel numbers)` of the windows that are products of spans."""
    image = x.shape[1:-1]
    out = np.zeros((x.shape[0], *map(len, axes), x.shape[-1]))
    for n, c in itertools.product(range(x.shape[0]), range(x.shape[-1])):
        for o in itertools.product(*[range(len(a)) for a in axes]):
            seen = list(itertools.product(*[a[i] for a, i in zip(axes, o, strict=True)]))
            values = np.array([x[(n, *at, c)] for at in seen])
            out[(n, *o, c)] = reduce(values, [int(np.ravel_multi_index(at, image)) for at in seen])
    return out


def largest(values: Array, _: Any) -> float:
    return float(values.max())


def winner(values: Array, numbers: list[int]) -> int:
    return numbers[int(values.argmax())]


def axes_of(x: Array, k: int, s: int, p: int, d: int = 1, ceil: bool = False) -> Any:
    return [spans(n, k, s, p, d, ceil) for n in x.shape[1:-1]]


def with_indices(x: Array, axes: Any) -> tuple[Array, Array]:
    return pooled(x, axes, largest), pooled(x, axes, winner).astype(np.int64)


def adaptive(size: int, output: int) -> list[list[int]]:
    return [list(range(i * size // output, -(-(i + 1) * size // output))) for i in range(output)]


POOLS = [(2, 2, 0, 1, True), (3, 2, 1, 1, True), (2, 3, 1, 2, False), (2, 2, 1, 2, True)]
POOLING = [
    *[Row(f"max_pool_padded {o}",
          lambda x, o=o: ops.max_pool_padded(x, *[(n, n) for n in o[:4]], o[4]),
          lambda x, o=o: pooled(x, axes_of(x, *o), largest), (IMAGE,)) for o in POOLS],
    *[Row(f"max_pool_indices {o}",
          lambda x, o=o: ops.max_pool_indices(x, *[(n, n) for n in o[:4]], o[4]),
          lambda x, o=o: with_indices(x, axes_of(x, *o)), (IMAGE,), False) for o in POOLS],
    Row("avg_pool_padded inside", lambda x: ops.avg_pool_padded(x, (3, 3), (2, 2), (1, 1), True,
                                                                False),
        lambda x: pooled(x, axes_of(x, 3, 2, 1, 1, True), lambda v, _: v.mean()), (IMAGE,)),
    Row("avg_pool_padded of a sum", lambda x: ops.avg_pool_padded(x, (2,), (2,), None, True,
                                                                  divisor=1),
        lambda x: pooled(x, axes_of(x, 2, 2, 0, 1, True), lambda v, _: v.sum()), (LINE,)),
    Row("avg_pool_padded, padding counts", lambda x: ops.avg_pool_padded(x, (4,), (3,), (1,), True),
        lambda x: np.stack([*[x[:, a:b].sum(1) / 4 for a, b in ((0, 3), (2, 6), (5, 9))],
                            x[:, 8] / 2], 1),
        (LINE,)),
    Row("lp_pool", lambda x: ops.lp_pool(x, 2, (2, 2)),
        lambda x: pooled(x, axes_of(x, 2, 2, 0), lambda v, _: (v**2).sum() ** 0.5),
        (IMAGE + 1,)),
    Row("lp_pool of a third power", lambda x: ops.lp_pool(x, 3, (3,), (2,)),
        lambda x: pooled(x, axes_of(x, 3, 2, 0), lambda v, _: (v**3).sum() ** (1 / 3)),
        (LINE + 1,), rtol=1e-10),
    *[Row(f"adaptive_avg_pool {o}", lambda x, o=o: ops.adaptive_avg_pool(x, o),
          lambda x, o=o: pooled(x, [adaptive(7, o[0]), adaptive(5, o[1])], lambda v, _: v.mean()),
          (IMAGE,)) for o in ((1, 1), (3, 2), (7, 1), (7, 5))],
    *[Row(f"adaptive_max_pool {o}", lambda x, o=o: ops.adaptive_max_pool(x, o),
          lambda x, o=o: pooled(x, [adaptive(7, o[0]), adaptive(5, o[1])], largest), (IMAGE,))
      for o in ((1, 1), (3, 2), (9, 4))],
    Row("adaptive_max_pool_indices", lambda x: ops.adaptive_max_pool_indices(x, (3, 2)),
        lambda x: with_indices(x, [adaptive(7, 3), adaptive(5, 2)]), (IMAGE,), False),
    Row("max_unpool", lambda x: ops.max_unpool(x, ops.constant([[[5], [0]]]), (2, 3)),
        lambda x: np.array([[x[0, 1], [0], [0]], [[0], [0], x[0, 0]]])[None], (LINE[:1, :2] + 1,)),
]  # fmt: skip


def transposed(x: Array, w: Array, s: int, p: int, extra: int, d: int) -> Array:
    """Every pixel spreads the window of weights, on one spatial axis."""
    full = np.zeros((x.shape[0], (x.shape[1] - 1) * s + (w.shape[0] - 1) * d + 1 + extra,
                     w.shape[1]))  # fmt: skip
    for i, t in itertools.product(range(x.shape[1]), range(w.shape[0])):
        full[:, i * s + t * d] += x[:, i] @ w[t].T
    return full[:, p : full.shape[1] - p]


def nearest(x: Array, size: int, exact: bool) -> Array:
    return x[:, [int((i + exact / 2) * x.shape[1] / size) for i in range(size)]]


def linear(x: Array, size: int, align: bool) -> Array:
    old = x.shape[1]
    at = [
        i * (old - 1) / (size - 1) if align else (i + 0.5) * old / size - 0.5 for i in range(size)
    ]
    rows = [[np.interp(at, np.arange(old), x[n, :, c]) for n in range(len(x))]
            for c in range(x.shape[2])]  # fmt: skip
    return np.array(rows).transpose(1, 2, 0)


W = RNG.standard_normal((3, 2, 1))
WINDOWS = [
    Row("unfold", lambda x: ops.unfold(x, (3,), (2,), ((1, 1),), (2,)),
        lambda x: np.pad(x, ((0, 0), (1, 1), (0, 0)))[:, [[o * 2 + t * 2 for t in range(3)]
                                                          for o in range(4)]], (LINE,)),
    Row("fold", lambda y: ops.fold(y, (4,), (2,), (2,)),
        lambda y: np.stack([y[:, 0, 0], y[:, 0, 1], y[:, 1, 0], y[:, 1, 1]], 1),
        (RNG.standard_normal((2, 2, 2, 3)),)),
    Row("fold that overlaps", lambda y: ops.fold(y, (2,), (2,), (1,), ((0, 1),)),
        lambda y: np.stack([y[:, 0, 0], y[:, 0, 1] + y[:, 1, 0]], 1),
        (RNG.standard_normal((2, 2, 2, 3)),)),
    *[Row(f"conv_transpose {o}",
          lambda x, w, o=o: ops.conv_transpose(x, w, o[:1], o[1:2], o[2:3], o[3:4]),
          lambda x, w, o=o: transposed(x, w, *o), (LINE[:, :4], W), rtol=1e-10)
      for o in ((1, 0, 0, 1), (2, 1, 1, 1), (3, 0, 2, 1), (1, 1, 2, 3))],
    *[Row(f"nearest {n}", lambda x, n=n: ops.interpolate(x, (n,)),
          lambda x, n=n: nearest(x, n, False), (LINE,)) for n in (1, 4, 9, 18, 20)],
    Row("nearest-exact", lambda x: ops.interpolate(x, (5,), "nearest-exact"),
        lambda x: nearest(x, 5, True), (LINE,)),
    *[Row(f"linear {n} {a}", lambda x, n=n, a=a: ops.interpolate(x, (n,), "linear", a),
          lambda x, n=n, a=a: linear(x, n, a), (LINE,))
      for n, a in ((4, False), (20, False), (4, True), (20, True))],
    Row("bilinear of a plane", lambda x: ops.interpolate(x, (3, 10), "linear", True),
        lambda x: np.add.outer(np.linspace(0, 3, 3), np.linspace(0, 4, 10))[None, ..., None],
        (np.add.outer(np.arange(4.0), np.arange(5.0))[None, ..., None],)),
    Row("cubic keeps straight lines", lambda x: ops.interpolate(x, (17,), "cubic", True)[:, 4:13],
        lambda x: np.linspace(2, 6, 9)[None, :, None], (np.arange(9.0)[None, :, None],)),
    Row("area", lambda x: ops.interpolate(x, (3,), "area"),
        lambda x: x.reshape(2, 3, 3, 1).mean(2), (LINE,)),
    Row("pixel_shuffle", lambda x: ops.pixel_shuffle(x, 2),
        lambda x: x.reshape(1, 2, 3, 2, 2, 2).transpose(0, 1, 4, 2, 5, 3).reshape(1, 4, 6, 2),
        (np.arange(48.0).reshape(1, 2, 3, 8) / 9,)),
    Row("pixel_unshuffle", lambda x: ops.pixel_shuffle(ops.pixel_unshuffle(x, 2), 2),
        lambda x: x, (np.arange(48.0).reshape(1, 4, 6, 2) / 9,)),
    Row("channel_shuffle", lambda x: ops.channel_shuffle(x, 2),
        lambda x: x[..., [0, 3, 1, 4, 2, 5]], (np.arange(12.0).reshape(2, 6),)),
]  # fmt: skip

ROWS = [*POOLING, *WINDOWS]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_values(row: Row) -> None:
    check_values(row)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_slopes(row: Row) -> None:
    check_slopes(row)


@pytest.mark.parametrize("rows", [POOLING, WINDOWS], ids=["pooling", "windows"])
def test_compiled(rows: list[Row]) -> None:
    check_compiled(rows)


def test_the_first_nan_wins_and_padding_never_does() -> None:
    x = np.full((1, 4, 1), -np.inf)
    x[0, 2] = np.nan
    values, at = run(lambda v: ops.max_pool_indices(v, (3,), (2,), (1,)), x)
    np.testing.assert_array_equal(values[0, :, 0], [-np.inf, np.nan])
    assert at[0, :, 0].tolist() == [0, 2]


def test_half_precision_is_rounded_once() -> None:
    x = np.linspace(0, 1, 7).astype(np.float16).reshape(1, 7, 1)
    found = run(lambda v: ops.interpolate(v, (9,), "linear"), x)
    np.testing.assert_array_equal(found, linear(x.astype(np.float64), 9, False).astype(np.float16))


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda x: ops.interpolate(x, (3,)), ShapeError, "interpolate: expected 2 positive sizes"),
        (lambda x: ops.interpolate(x, (3, 3), "sinc"), GraphError, "area, got 'sinc'"),
        (lambda x: ops.pixel_shuffle(x, 2), ShapeError, "expected channels that 2 * 2 divides"),
        (lambda x: ops.pixel_unshuffle(x, 2), ShapeError, "expected sizes that 2 divides"),
        (lambda x: ops.pixel_shuffle(x[0], 2), ShapeError, "expected x of rank 4"),
        (lambda x: ops.channel_shuffle(x, 2), ShapeError, "groups that divide 3 channels, got 2"),
        (lambda x: ops.adaptive_avg_pool(x, (0, 1)), ShapeError, "expected 2 positive output"),
        (lambda x: ops.unfold(x, (9, 9)), ShapeError, "unfold: expected a window of at most"),
        (lambda x: ops.fold(x, (4,), (2,)), ShapeError, "fold: expected patches of shape"),
        (
            lambda x: ops.conv_transpose(x, x, output_padding=(1, 0)),
            ShapeError,
            "conv_transpose: expected an output padding below stride or dilation, got (1, 0)",
        ),
        (lambda x: ops.max_pool_indices(x, (9, 1)), ShapeError, "expected a window of at most"),
    ],
)
def test_errors(build: Any, error: Any, message: str) -> None:
    with Graph().as_default(), pytest.raises(error) as caught:
        build(ops.placeholder(dtype="float32", shape=(2, 5, 4, 3)))
    assert message in str(caught.value)
    assert "(created at test_pooling.py:" in str(caught.value)
