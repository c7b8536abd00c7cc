"""Regions of images, beside loops over boxes, bins and points."""

import io

import numpy as np
import pytest
from PIL import Image

import weft as wf
from weft import ops
from weft.errors import DataError, ShapeError
from weft.mirror.supplied import torchvision_image, torchvision_ops

rng = np.random.default_rng(0)


def overlap(a, b):
    low, high = np.maximum(a[:2], b[:2]), np.minimum(a[2:], b[2:])
    shared = np.prod(np.maximum(high - low, 0))
    return shared / (np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2]) - shared)


@pytest.mark.parametrize("threshold", [0.1, 0.5, 0.9])
def test_boxes_that_overlap_no_better_one_stay(threshold):
    boxes = rng.uniform(0, 20, (40, 4))
    boxes[:, 2:] += boxes[:, :2]
    scores = rng.integers(0, 9, 40) / 8  # some are equal: the first is better
    kept = []
    for i in np.argsort(-scores, kind="stable"):
        if all(overlap(boxes[i], boxes[j]) <= threshold for j in kept):
            kept.append(i)
    found = torchvision_ops.nms(wf.tensor(boxes), wf.tensor(scores), threshold)
    assert found.tolist() == kept and found.dtype is wf.int64
    assert torchvision_ops.nms(wf.zeros(0, 4), wf.zeros(0), threshold).tolist() == []


def between(image, y, x):
    """An image, (C, H, W), between its pixels; 0 from one pixel outside."""
    height, width = image.shape[1:]
    if not (-1 <= y <= height and -1 <= x <= width):
        return np.zeros(len(image))
    y, x = np.clip(y, 0, height - 1), np.clip(x, 0, width - 1)
    (i, p), (j, q) = divmod(y, 1), divmod(x, 1)
    i, j = int(i), int(j)
    k, m = min(i + 1, height - 1), min(j + 1, width - 1)
    above = image[:, i, j] * (1 - q) + image[:, i, m] * q
    return above * (1 - p) + (image[:, k, j] * (1 - q) + image[:, k, m] * q) * p


def by_loops(images, boxes, size, scale, ratio, aligned):
    out = np.zeros((len(boxes), images.shape[1], *size))
    for k, (number, *box) in enumerate(boxes):
        x1, y1, x2, y2 = np.array(box) * scale - (0.5 if aligned else 0)
        lengths = np.array([y2 - y1, x2 - x1])
        lengths = lengths if aligned else np.maximum(lengths, 1)
        grid = [ratio] * 2 if ratio > 0 else np.ceil(lengths / size).astype(int)
        bins = lengths / size
        for i, j in np.ndindex(*size):
            for a, b in np.ndindex(*grid):
                y, x = (
                    y1 + bins[0] * (i + (a + 0.5) / grid[0]),
                    x1 + bins[1] * (j + (b + 0.5) / grid[1]),
                )
                out[k, :, i, j] += between(images[int(number)], y, x) / np.prod(grid)
    return out


@pytest.mark.parametrize("aligned", [True, False])
@pytest.mark.parametrize("ratio", [-1, 2])
def test_means_over_bins_of_boxes(aligned, ratio):
    images = rng.normal(size=(2, 3, 9, 11))
    boxes = np.array([
        [0, 1, 2, 15, 14], [1, 0, 0, 21, 17], [1, -9, -9, 4, 4], [0, 30, 30, 40, 44],
        [0, 4, 4, 4, 4], [1, 3.3, 2.2, 4.4, 17.1],
    ])  # fmt: skip
    x = wf.tensor(images, requires_grad=True)
    y = torchvision_ops.roi_align(x, wf.tensor(boxes), 0.5, 3, 2, ratio, aligned)
    np.testing.assert_allclose(
        y.detach().numpy(), by_loops(images, boxes, (3, 2), 0.5, ratio, aligned), atol=1e-12
    )
    weights = rng.normal(size=y.shape)
    (y * wf.tensor(weights)).sum().backward()
    change = rng.normal(size=images.shape)  # the means are linear in the images
    wanted = (by_loops(change, boxes, (3, 2), 0.5, ratio, aligned) * weights).sum()
    np.testing.assert_allclose((x.grad.numpy() * change).sum(), wanted, rtol=1e-10)
    none = torchvision_ops.roi_align(x, wf.zeros(0, 5), 0.5, 3, 2, ratio, aligned)
    assert tuple(none.shape) == (0, 3, 3, 2)


def test_points_of_a_bin_follow_from_its_box():
    boxes = np.array([[0, 0, 0, 20, 10.0], [0, 2, 2, 2, 2]])
    assert ops.region_samples(boxes, (7, 7), 1.0, True).tolist() == [[2, 3], [0, 0]]


def test_largest_values_of_bins_and_where_they_are():
    images = np.maximum(rng.normal(size=(2, 3, 9, 11)), 0)  # zeros are equal: the first is taken
    boxes = np.array([
        [0, 1, 2, 15, 14], [1, -9, -9, 4, 4], [0, 30, 30, 40, 44], [1, 3.3, 2.2, 4.4, 17.1],
        [0, 5, 5, 2, 2],
    ])  # fmt: skip
    size, scale = (3, 2), 0.5
    values, places = np.zeros((5, 3, *size)), np.full((5, 3, *size), -1)
    for k, (number, *box) in enumerate(boxes):
        x1, y1, x2, y2 = [np.sign(v) * np.floor(abs(v) * scale + 0.5) for v in box]
        high, wide = max(y2 - y1 + 1, 1) / size[0], max(x2 - x1 + 1, 1) / size[1]
        for i, j in np.ndindex(*size):
            rows = np.clip([np.floor(i * high) + y1, np.ceil((i + 1) * high) + y1], 0, 9)
            columns = np.clip([np.floor(j * wide) + x1, np.ceil((j + 1) * wide) + x1], 0, 11)
            pixels = [(y, x) for y in range(*rows.astype(int)) for x in range(*columns.astype(int))]
            for c in range(3 if pixels else 0):
                best = max(pixels, key=lambda at: images[int(number), c, *at])
                values[k, c, i, j] = images[int(number), c, *best]
                places[k, c, i, j] = best[0] * 11 + best[1]
    x = wf.tensor(images, requires_grad=True)
    y, where = torchvision_ops.roi_pool(x, wf.tensor(boxes), scale, *size)
    assert y.tolist() == values.tolist() and where.tolist() == places.tolist()
    y.sum().backward()
    assert x.grad.sum().item() == (places >= 0).sum()


@pytest.mark.parametrize("groups", [1, 2])
def test_a_kernel_that_reaches_elsewhere(groups):
    image, weight = wf.randn(2, 4, 7, 6), wf.randn(6, 4 // groups, 3, 2)
    shape, bias = dict(stride=(1, 2), padding=(2, 1), dilation=(1, 2)), wf.randn(6)
    expected = wf.nn.functional.conv2d(image, weight, bias, groups=groups, **shape)
    zero = wf.zeros(2, 24, *expected.shape[2:])

    def found(image, offset, mask=None):
        how = [n for pair in shape.values() for n in pair]
        mask = [zero, False] if mask is None else [mask, True]
        return torchvision_ops.deform_conv2d(
            image, weight, offset, mask[0], bias, *how, groups, 2, mask[1]
        )

    np.testing.assert_allclose(found(image, zero), expected, rtol=1e-4, atol=1e-5)
    half = found(image, zero, wf.full((2, 12, *expected.shape[2:]), 0.5))
    bare = expected - bias.reshape(1, -1, 1, 1)
    np.testing.assert_allclose(half, bare / 2 + bias.reshape(1, -1, 1, 1), rtol=1e-4, atol=1e-5)
    down = zero.clone()
    down[:, ::2] = 0.25  # every point reads a quarter of a pixel further down
    below = wf.nn.functional.pad(image, (0, 0, 0, 1))[:, :, 1:]
    moved = found(image * 0.75 + below * 0.25, zero)
    np.testing.assert_allclose(  # beside rows that reach into the image from above
        found(image, down)[:, :, 3:], moved[:, :, 3:], rtol=1e-4, atol=1e-5
    )
    with pytest.raises(ShapeError, match=r"deform_conv2d: expected offset of shape \(2, 24, "):
        found(image, zero[:, :-2])


def test_image_files(tmp_path):
    pixels = rng.integers(0, 255, (3, 5, 7), dtype=np.uint8)
    data = torchvision_image.encode_png(wf.tensor(pixels))
    torchvision_image.write_file(str(tmp_path / "a.png"), data)
    read = torchvision_image.read_file(str(tmp_path / "a.png"))
    np.testing.assert_array_equal(torchvision_image.decode_image(read), pixels)
    assert tuple(torchvision_image.decode_image(read, 1).shape) == (1, 5, 7)
    jpeg = torchvision_image.encode_jpeg(wf.tensor(pixels), 90)
    assert Image.open(io.BytesIO(jpeg.numpy().tobytes())).size == (7, 5)
    with pytest.raises(DataError, match="decode_image: expected an image, got 3 bytes"):
        torchvision_image.decode_image(wf.zeros(3, dtype=wf.uint8))
