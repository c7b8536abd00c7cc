"""Data sets from folders, text and tables."""

import gzip
import struct

import numpy as np
import pytest

from weft.datasets import (
    CIFAR10,
    CIFAR100,
    MNIST,
    BytePairTokenizer,
    CharTokenizer,
    FashionMNIST,
    ImageFolder,
    TextDataset,
    read_csv,
)
from weft.errors import ArgumentError, DataError
from weft.formats import image
from weft.utils.data import DataLoader

PIXELS = np.random.default_rng(0).integers(0, 256, (6, 28, 28), np.uint8)


def idx(array):
    head = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    return head + array.tobytes()


def test_mnist_and_similar_data_sets(tmp_path):
    folder = tmp_path / "FashionMNIST" / "raw"
    folder.mkdir(parents=True)
    (folder / "train-images-idx3-ubyte").write_bytes(idx(PIXELS))
    (folder / "train-labels-idx1-ubyte.gz").write_bytes(
        gzip.compress(idx(np.arange(6, dtype="u1")))
    )
    data = FashionMNIST(tmp_path, transform=lambda x: x / 255)
    assert len(data) == 6
    assert np.allclose(data[2][0], PIXELS[2][..., None] / 255)
    assert data.classes[data[5][1]] == "Sandal"
    x, y = next(iter(DataLoader(data, batch_size=4)))
    assert x.shape == (4, 28, 28, 1)
    assert y.tolist() == [0, 1, 2, 3]
    with pytest.raises(DataError, match=r"MNIST: expected t10k-images-idx3-ubyte .*get the data"):
        MNIST(tmp_path, train=False, download=True)


def test_cifar(tmp_path):
    rows = np.random.default_rng(1).integers(0, 256, (5, 3073), np.uint8)
    rows[:, 0] = range(5)
    inside = tmp_path / "cifar-10-batches-bin"
    inside.mkdir()
    (inside / "test_batch.bin").write_bytes(rows.tobytes())
    data = CIFAR10(tmp_path, train=False)
    assert data[3][0].shape == (32, 32, 3)
    assert data[3][0][0, 1, 2] == rows[3, 1 + 2 * 1024 + 1]
    assert data.targets.tolist() == [0, 1, 2, 3, 4]
    (inside / "test_batch.bin").write_bytes(rows.tobytes()[:-1])
    with pytest.raises(DataError, match=r"test_batch\.bin: expected rows of 3073 bytes"):
        CIFAR10(tmp_path, train=False)
    fine = np.concatenate([rows[:, :1] + 9, rows], 1)
    (tmp_path / "test.bin").write_bytes(fine.tobytes())
    assert CIFAR100(tmp_path, train=False).targets.tolist() == [0, 1, 2, 3, 4]


def test_image_folders(tmp_path):
    for name in ("b", "a"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "0.png").write_bytes(image.encode(PIXELS[0]))
    data = ImageFolder(tmp_path, transform=np.asarray)
    assert data.class_to_idx == {"a": 0, "b": 1}
    assert [(x.shape, y) for x, y in data] == [((28, 28, 3), 0), ((28, 28, 3), 1)]
    with pytest.raises(DataError, match=r"found none in \[\]"):
        ImageFolder(tmp_path / "a")


def test_text():
    text = "the cat and the hat and the cap " * 20
    tokens = BytePairTokenizer.train(text, 266)
    assert tokens.size == 266
    encoded = tokens.encode(text)
    assert tokens.decode(encoded) == text
    assert len(encoded) < len(text) / 2
    assert tokens.decode(tokens.encode("außer 漢字\n\n x")) == "außer 漢字\n\n x"
    assert BytePairTokenizer(tokens.merges).encode(text).tolist() == encoded.tolist()
    with pytest.raises(ArgumentError, match="size >= 256"):
        BytePairTokenizer.train(text, 100)
    characters = CharTokenizer(text)
    with pytest.raises(DataError, match="got 'z'"):
        characters.encode("zoo")
    windows = TextDataset(characters.encode("the cat and"), 4)
    assert [characters.decode(w[0]) for w in windows] == ["the ", "cat "]
    assert characters.decode(windows[1][1]) == "at a"
    assert len(TextDataset(np.arange(10), 4, stride=1)) == 6


def test_tables(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("n,x,name\n1,0.5,a\n2,,b\n")
    table = read_csv(path)
    assert table["n"].dtype == np.int64
    assert table["x"].tolist()[:1] == [0.5]
    assert np.isnan(table["x"][1])
    assert table["name"].tolist() == ["a", "b"]
    path.write_text("n,x\n1\n")
    with pytest.raises(DataError, match=r"table\.csv, line 2: expected 2 fields, got 1"):
        read_csv(path)
    path.write_text("")
    with pytest.raises(DataError, match="at least one row"):
        read_csv(path)
