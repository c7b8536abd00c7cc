import gzip
import struct

import numpy as np
import pytest

from weft import config
from weft.datasets import get_mnist, load_digits, read_idx
from weft.datasets.digits import resize
from weft.errors import DataError


def idx(array: np.ndarray, code: int) -> bytes:
    head = struct.pack(">HBB", 0, code, array.ndim) + struct.pack(f">{array.ndim}I", *array.shape)
    return head + array.astype(array.dtype.newbyteorder(">")).tobytes()


def test_bundled_digits_are_all_there():
    images, labels = load_digits()
    assert images.shape == (1797, 8, 8) and images.dtype == np.float32
    assert images.min() == 0 and images.max() == 1
    assert np.bincount(labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


@pytest.mark.parametrize("compress", [gzip.compress, bytes])
@pytest.mark.parametrize(("dtype", "code"), [("u1", 8), ("i2", 11), ("i4", 12), ("f4", 13)])
def test_idx_round_trip(tmp_path, compress, dtype, code):
    array = np.arange(24).reshape(2, 3, 4).astype(dtype)
    path = tmp_path / "file"
    path.write_bytes(compress(idx(array, code)))
    found = read_idx(path)
    assert found.dtype == array.dtype and np.array_equal(found, array)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "expected an IDX file"),
        (b"PNG\0", "expected an IDX file"),
        (idx(np.zeros((2, 2), "u1"), 8)[:-1], "expected 4 bytes of data"),
        (idx(np.zeros((2, 2), "u1"), 8)[:7], "ends before them"),
        (gzip.compress(b"x" * 100, mtime=0)[:20], "expected a gzip file"),
    ],
)
def test_damaged_files_raise(tmp_path, data, message):
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(DataError, match=message):
        read_idx(path)


def test_an_epoch_sees_every_image_once(capsys):
    mnist = get_mnist(onehot=False)
    assert "bundled UCI digits" in capsys.readouterr().err
    seen = np.concatenate([mnist.train.next_batch(479)[0] for _ in range(3)])
    assert sorted(map(bytes, seen)) == sorted(map(bytes, mnist.train.images))
    assert mnist.train.epochs_completed == 0
    mnist.train.next_batch(10)
    assert mnist.train.epochs_completed == 1


def test_shapes_and_splits():
    mnist = get_mnist(flatten=False, onehot=True)
    assert mnist.train.images.shape == (1437, 28, 28) and mnist.test.images.shape == (360, 28, 28)
    assert mnist.test.labels.shape == (360, 10) and (mnist.test.labels.sum(1) == 1).all()
    with pytest.raises(DataError, match="batch_size"):
        mnist.test.next_batch(361)


def test_files_of_a_directory(tmp_path):
    for name, count in (("t10k", 10), ("train", 30)):
        images = np.full((count, 28, 28), 255, "u1")
        labels = np.arange(count).astype("u1") % 10
        (tmp_path / f"{name}-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(images, 8)))
        (tmp_path / f"{name}-labels-idx1-ubyte").write_bytes(idx(labels, 8))
    with config.override(data=str(tmp_path)):
        mnist = get_mnist(onehot=False)
    assert mnist.train.num_examples == 30 and mnist.test.num_examples == 10
    assert mnist.train.images.max() == 1.0
    with pytest.raises(DataError, match="t10k-images"):
        get_mnist(directory=tmp_path / "nothing")


def test_resize_keeps_constants_and_corners():
    assert np.allclose(resize(np.ones((1, 8, 8), np.float32), 28), 1)
    image = np.arange(16, dtype=np.float32).reshape(1, 4, 4)
    assert np.array_equal(resize(image, 4), image)
    assert resize(image, 8)[0, 0, 0] == image[0, 0, 0]
