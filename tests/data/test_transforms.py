"""Transforms: shapes, values, and the same random numbers in any thread."""

import numpy as np
import pytest

import weft as wf
from weft.data import Dataset, transforms
from weft.errors import ArgumentError, ShapeError
from weft.formats import image

PIXELS = np.random.default_rng(0).integers(0, 256, (12, 16, 3), np.uint8)
PICTURE = image.opened(image.encode(PIXELS))


@pytest.mark.parametrize("given", [PIXELS, PICTURE], ids=["array", "picture"])
def test_images_of_both_kinds(given):
    wf.manual_seed(0)
    as_array = transforms.PILToTensor()
    assert (as_array(given).numpy() == PIXELS.transpose(2, 0, 1)).all()
    assert np.allclose(transforms.ToTensor()(given).numpy(), PIXELS.transpose(2, 0, 1) / 255)

    def array(transform):
        return as_array(transform(given)).numpy().transpose(1, 2, 0)

    assert (array(transforms.CenterCrop((4, 6))) == PIXELS[4:8, 5:11]).all()
    assert array(transforms.CenterCrop(20)).shape == (20, 20, 3)
    assert (array(transforms.RandomHorizontalFlip(1.0)) == PIXELS[:, ::-1]).all()
    assert (array(transforms.RandomVerticalFlip(1.0)) == PIXELS[::-1]).all()
    assert (array(transforms.RandomVerticalFlip(0.0)) == PIXELS).all()
    assert array(transforms.Resize(6)).shape == (6, 8, 3)
    assert array(transforms.Resize((5, 7))).shape == (5, 7, 3)
    assert array(transforms.Pad((1, 2))).shape == (16, 18, 3)
    assert (array(transforms.Pad(1))[1:-1, 1:-1] == PIXELS).all()
    assert array(transforms.RandomResizedCrop(8)).shape == (8, 8, 3)
    assert array(transforms.Grayscale(3)).shape == (12, 16, 3)
    cropped = array(transforms.RandomCrop(8, padding=2))
    assert cropped.shape == (8, 8, 3)
    assert (array(transforms.ColorJitter()) == PIXELS).all()
    darker = array(transforms.ColorJitter(brightness=(0.5, 0.5)))
    assert abs(darker.astype(int) - PIXELS // 2).max() <= 1
    assert array(transforms.ColorJitter(0.2, 0.2, 0.2, 0.1)).shape == PIXELS.shape
    with pytest.raises(ShapeError, match="RandomCrop: expected at least 13 x 13, got 12 x 16"):
        transforms.RandomCrop(13)(given)


def test_tensors():
    x = transforms.ToTensor()(PIXELS)
    mean, std = x.numpy().mean((1, 2)), x.numpy().std((1, 2))
    found = transforms.Normalize(mean, std)(x)
    assert isinstance(found, wf.Tensor)
    assert np.allclose(found.numpy().mean((1, 2)), 0, atol=1e-5)
    assert np.allclose(found.numpy().std((1, 2)), 1, atol=1e-5)
    wf.manual_seed(0)
    erased = transforms.RandomErasing(1.0, value=-1)(x).numpy()
    assert 0 < (erased == -1).all(0).mean() < 0.5
    assert not (x.numpy() == -1).any()
    with pytest.raises(ArgumentError, match="std other than 0"):
        transforms.Normalize([0.5], [0.0])
    with pytest.raises(ShapeError, match="ToTensor comes before"):
        transforms.Normalize([0.5], [1.0])(np.zeros(3))


def test_mixup_keeps_shares():
    batches = Dataset.from_tensor_slices((np.eye(8, dtype=np.float32), np.arange(8) % 4)).batch(8)
    x, y = next(iter(batches.map(transforms.MixUp(4))))
    assert np.allclose(y.numpy().sum(1), 1)
    assert np.allclose(x.numpy().sum(1), 1)
    assert np.allclose(x.numpy()[:, :4] + x.numpy()[:, 4:], y.numpy(), atol=1e-6)


def test_an_element_is_the_same_in_any_thread():
    augment = transforms.Compose(
        [
            transforms.RandomCrop(8, padding=2),
            transforms.RandomApply([transforms.RandomHorizontalFlip()], 0.8),
            transforms.ToTensor(),
            transforms.RandomErasing(),
        ]
    )
    rows = np.random.default_rng(1).integers(0, 256, (20, 8, 8, 1), np.uint8)

    def epochs(threads):
        wf.manual_seed(2)
        dataset = Dataset.from_tensor_slices(rows).map(augment, threads).batch(5)
        return [[b.numpy().tolist() for b in dataset] for _ in range(2)]

    first = epochs(None)
    assert first == epochs(3)
    assert first[0] != first[1]
