"""`grid_sample` and `affine_grid` against PyTorch's."""

import numpy as np
import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st
from strategies import at_most

torch = pytest.importorskip("torch")

import weft as wf  # noqa: E402
import weft.nn.functional as F  # noqa: E402
from tests.torch.tensor_case import agree, draw, seeds  # noqa: E402
from weft.errors import ShapeError  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # of grids of one pixel
few = at_most(3, phases=[Phase.generate])
MODES = ["bilinear", "nearest", "bicubic"]
PADDINGS = ["zeros", "border", "reflection"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("padding", PADDINGS)
@given(st.booleans(), st.booleans(), seeds)
@few
def test_grid_sample(mode, padding, align, solid, seed):
    rng = np.random.default_rng(seed)
    axes = 3 if solid and mode != "bicubic" else 2
    image = [int(n) for n in rng.integers(2, 5, axes)]
    x = draw((2, 2, *image), seed=seed)
    grid = draw((2, *rng.integers(1, 4, axes), axes), -1.7, 1.7, seed)
    how = {"mode": mode, "padding_mode": padding, "align_corners": align}
    agree(lambda t, x, g: t.nn.functional.grid_sample(x, g, **how), x, grid, rtol=2e-4, atol=2e-5)


@given(st.booleans(), st.booleans(), seeds)
@few
def test_affine_grid(align, solid, seed):
    axes = 3 if solid else 2
    theta = draw((2, axes, axes + 1), seed=seed)
    size = (2, 1, *[int(n) for n in np.random.default_rng(seed).integers(1, 5, axes)])
    agree(lambda t, x: t.nn.functional.affine_grid(x, size, align_corners=align), theta)


ERRORS = [
    (lambda: F.grid_sample(wf.ones(1, 1, 2), wf.ones(1, 2, 1)), ShapeError, r"\(N, C, H, W\) and"),
    (lambda: F.grid_sample(wf.ones(2, 1, 2, 2), wf.ones(1, 1, 1, 2)), ShapeError, "as many grids"),
    (lambda: F.grid_sample(wf.ones(1, 1, 2, 2), wf.ones(1, 1, 1, 2), "x"), ValueError, "bicubic"),
    (
        lambda: F.grid_sample(wf.ones(1, 1, 2, 2), wf.ones(1, 1, 1, 2), padding_mode="x"),
        ValueError,
        "expected padding_mode of zeros, border, reflection",
    ),
    (lambda: F.affine_grid(wf.ones(2, 2), (2, 1, 2, 2)), ShapeError, r"theta of shape \(2, 2, 3\)"),
]


@pytest.mark.parametrize(("run", "kind", "text"), ERRORS)
def test_errors_say_what_is_expected(run, kind, text):
    with pytest.raises(kind, match=text):
        run()
