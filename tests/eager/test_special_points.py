"""Values and gradients where a naive formula would divide by zero or lose a NaN."""

from __future__ import annotations

import math

import pytest

import weft as wf
from weft import config
from weft.nn import functional as F

INF, NAN = math.inf, math.nan
LN2 = math.log(2)

# A function, its arguments, its values, and the slopes of their sum in each argument.
POINTS = {
    "xlogy": (wf.xlogy, [[0, 0, 0, 0, 2], [2, 0, -1, NAN, 0.5]], [0, 0, 0, NAN, -2 * LN2],
              [[LN2, 0, 0, NAN, -LN2], [0, 0, 0, NAN, 4]]),
    "xlog1py": (wf.special.xlog1py, [[0, 0, 0, 2], [1, -1, INF, 1]], [0, 0, 0, 2 * LN2],
                [[LN2, 0, 0, LN2], [0, 0, 0, 1]]),
    "atan2": (wf.atan2, [[0, 1, 0], [0, 0, 2]], [0, math.pi / 2, 0], [[0, 0, 0.5], [0, -1, 0]]),
    "angle": (wf.angle, [[INF, -INF, 0, NAN]], [0, math.pi, 0, NAN], None),
    "digamma": (wf.digamma, [[-INF, INF, 0, -2]], [NAN, INF, -INF, NAN], None),
    "lgamma": (wf.lgamma, [[INF, 2]], [INF, 0], [[INF, 1 - 0.5772156649015329]]),
    "lp_pool": (lambda x: F.lp_pool1d(x[None], 2, 2)[0], [[0, 0, 3, 4]], [0, 5],
                [[0, 0, 0.6, 0.8]]),
    "normalize": (lambda x: F.normalize(x, dim=0), [[NAN, 1]], [NAN, NAN], None),
    "normalize of nothing": (lambda x: F.normalize(x, dim=0), [[0, 0]], [0, 0], [[1e12, 1e12]]),
    "pairwise_distance": (lambda x, y: F.pairwise_distance(x, y, eps=0.0)[None],
                          [[3, NAN], [0, 1]], [NAN], None),
    "pairwise_distance of the same": (lambda x, y: F.pairwise_distance(x, y, eps=0.0)[None],
                                      [[3, 1], [3, 1]], [0], [[0, 0], [0, 0]]),
    "norm that counts": (lambda x, y: F.pairwise_distance(x, y, p=0, eps=0.0)[None],
                         [[3, NAN, 1], [3, 1, 2]], [2], None),
}  # fmt: skip


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", POINTS)
def test_special_points(name: str, compiled: bool) -> None:
    function, arguments, values, slopes = POINTS[name]
    with config.override(compile=compiled):
        xs = [wf.tensor(a, dtype=wf.float64, requires_grad=True) for a in arguments]
        y = function(*xs)
        assert y.tolist() == pytest.approx(values, nan_ok=True, rel=1e-12)
        if slopes is not None:
            y.sum().backward()
            for x, slope in zip(xs, slopes, strict=True):
                assert x.grad.tolist() == pytest.approx(slope, nan_ok=True, rel=1e-9)
