"""ImageDataGenerator: changes as SciPy makes them, order and parts of batches, folders."""

import numpy as np
import pytest
from scipy import ndimage

from weft.datasets.warp import MODES, warped
from weft.errors import ArgumentError
from weft.tf1.keras.preprocessing.image import ImageDataGenerator, array_to_img

X = np.random.RandomState(0).rand(10, 8, 6, 3).astype(np.float32) * 255


@pytest.mark.parametrize("mode", MODES)
def test_images_are_warped_as_by_scipy(mode):
    turn = np.array([[0.9, -0.4, 1.3], [0.3, 1.2, -2.1], [0, 0, 1]])
    expected = [
        ndimage.affine_transform(
            X[0, ..., c], turn[:2, :2], turn[:2, 2], order=1, mode=mode, cval=7
        )
        for c in range(3)
    ]
    np.testing.assert_allclose(warped(X[0], turn, mode, 7), np.stack(expected, -1), rtol=2e-5)


def test_a_seed_gives_the_same_batches_and_each_image_once():
    generator = ImageDataGenerator(rotation_range=20, zoom_range=0.2, horizontal_flip=True)
    batches = generator.flow(X, np.arange(10), batch_size=4, seed=1)
    again = generator.flow(X, np.arange(10), batch_size=4, seed=1)
    epoch = [next(batches) for _ in range(len(batches))]
    assert sorted(np.concatenate([y for _, y in epoch])) == list(range(10))
    for x, y in epoch:
        other_x, other_y = next(again)
        np.testing.assert_array_equal(x, other_x)
        assert y.tolist() == other_y.tolist()


def test_changes_are_as_told():
    generator = ImageDataGenerator(rescale=0.5, validation_split=0.3)
    change = {"flip_horizontal": True, "tx": 1, "brightness": None}
    moved = np.concatenate([X[0][:, 1:], X[0][:, -1:]], 1)
    np.testing.assert_allclose(generator.apply_transform(X[0], change), moved[:, ::-1], rtol=1e-6)
    parts = [generator.flow(X, shuffle=False, subset=s) for s in ("validation", "training")]
    assert [p.n for p in parts] == [3, 7]
    np.testing.assert_allclose(next(parts[0]), X[:3] * 0.5)
    scaled = ImageDataGenerator(featurewise_center=True)
    with pytest.raises(ArgumentError, match="fit"):
        next(scaled.flow(X))
    scaled.fit(X)
    assert abs(next(scaled.flow(X)).mean()) < 1e-3


def test_folders_are_classes(tmp_path):
    for name in ("b", "a"):
        (tmp_path / name).mkdir()
        for i in range(2):
            array_to_img(X[i], scale=False).save(tmp_path / name / f"{i}.png")
    made = ImageDataGenerator().flow_from_directory(
        tmp_path, target_size=(8, 6), class_mode="binary", batch_size=3, shuffle=False
    )
    assert made.class_indices == {"a": 0, "b": 1} and made.classes.tolist() == [0, 0, 1, 1]
    made.saved = tmp_path, "changed", "png"
    x, y = next(made)
    assert len(list(tmp_path.glob("changed_*.png"))) == 3
    assert y.tolist() == [0, 0, 1]
    np.testing.assert_array_equal(x, np.floor(X[[0, 1, 0]]))
    with pytest.raises(ArgumentError, match="zca_whitening"):
        ImageDataGenerator(zca_whitening=True)
