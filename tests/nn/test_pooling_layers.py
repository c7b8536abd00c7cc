"""Fractional pooling with random windows, and empty inputs."""

import numpy as np
import pytest

import weft as wf
from weft import nn
from weft.errors import ShapeError
from weft.nn import functional as F


@pytest.mark.parametrize(("image", "size"), [((6, 7), (3, 4)), ((5, 4, 6), (2, 3, 1))])
def test_fractional_windows_cover_the_image_and_give_their_maxima(image, size):
    spatial = len(image)
    pool = getattr(F, f"fractional_max_pool{spatial}d")
    x = wf.randn(2, 3, *image, dtype=wf.float64).requires_grad_()
    y, places = pool(x, 2, size, return_indices=True)
    assert y.shape == places.shape == (2, 3, *size)
    flat = x.reshape(2, 3, -1).gather(2, places.reshape(2, 3, -1))
    assert y.tolist() == flat.reshape(y.shape).tolist()
    y.sum().backward()
    assert x.grad.sum().item() == y.numel()
    module = getattr(nn, f"FractionalMaxPool{spatial}d")(2, output_ratio=0.5)
    assert module(x[0]).shape == (3, *[n // 2 for n in image])


def test_given_numbers_decide_on_the_windows():
    x = wf.arange(25.0).reshape(1, 5, 5)
    samples = wf.tensor([[[0.5, 0.9]]])  # for the width first
    y, places = F.fractional_max_pool2d(x, 2, 3, return_indices=True, _random_samples=samples)
    assert places.tolist() == [[[6, 8, 9], [11, 13, 14], [21, 23, 24]]]
    assert y.tolist() == [[[6, 8, 9], [11, 13, 14], [21, 23, 24]]]
    more = wf.cat([samples, 0 * samples])
    assert F.fractional_max_pool2d(x, 2, 3, _random_samples=more).tolist() == y.tolist()
    assert F.fractional_max_pool2d(x, 2, (0, 1)).shape == (1, 0, 1)
    assert np.isnan(F.fractional_max_pool2d(x * np.nan, 2, 1).item())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kernel_size": (2,), "output_size": 2}, "kernel_size: expected 1 or 2 numbers"),
        ({"kernel_size": 2, "output_size": (5, 2)}, "output_size \\+ kernel_size - 1 of at most"),
        ({"kernel_size": 2}, "expected output_size or output_ratio"),
        (
            {"kernel_size": 2, "output_size": 2, "_random_samples": np.zeros((2, 2, 2))},
            "_random_samples of shape \\(1, 1, 2\\)",
        ),
    ],
)
def test_faults_of_fractional_pooling(options, message):
    with pytest.raises(ValueError, match=message):
        F.fractional_max_pool2d(wf.zeros(1, 5, 5), **options)


@pytest.mark.parametrize("shape", [(2, 0, 4, 4), (2, 3, 0, 4)])
def test_only_the_batch_may_be_empty(shape):
    for pool in (nn.MaxPool2d(2), nn.AvgPool2d(2), nn.AdaptiveMaxPool2d(2), nn.LPPool2d(2, 2)):
        with pytest.raises(ShapeError, match="sizes above 0 except for N"):
            pool(wf.zeros(*shape))
        assert pool(wf.zeros(0, 3, 4, 4)).shape == (0, 3, 2, 2)
    assert nn.AdaptiveAvgPool2d(2)(wf.zeros(2, 0, 4, 4)).shape == (2, 0, 2, 2)


@pytest.mark.parametrize("size", [(4, 6), (5, 5), (1, 1, 6, 4)])
def test_unpooling_to_a_size_near_that_of_the_windows(size):
    pool, back = nn.MaxPool2d(3, 2, return_indices=True), nn.MaxUnpool2d(3, 2)
    y, places = pool(wf.ones(1, 1, 5, 5))
    assert tuple(back(y, places, output_size=size).shape)[-2:] == size[-2:]


@pytest.mark.parametrize("size", [(3, 5), (5, 7), (9, 9), (5,), (1, 5, 5)])
def test_unpooling_to_another_size_raises(size):
    pool, back = nn.MaxPool2d(3, 2, return_indices=True), nn.MaxUnpool2d(3, 2)
    y, places = pool(wf.ones(1, 1, 5, 5))
    with pytest.raises(ShapeError, match="output_size of 4 to 6, 4 to 6, got"):
        back(y, places, output_size=size)
    with pytest.raises(ShapeError, match="indices of the input's shape"):
        back(y, places[:, :, :1])
