"""Tables: filled once or changed; from tensors and text files."""

import random

import numpy as np
import pytest

import weft.resource  # noqa: F401 -- the kinds
from weft.errors import ArgumentError, MissingError, UninitializedError
from weft.ops.resource.spec import ResourceSpec
from weft.resource.base import Cancellation, Containers


class Handle:
    def __init__(self, kind="MutableHashTableV2", key="int64", value="int64", **options):
        pairs = {"key_dtype": key, "value_dtype": value, **options}
        self.spec = ResourceSpec(kind, "t", "", tuple(pairs.items()))
        self.containers = Containers()

    def call(self, method, *inputs, **options):
        arrays = [x if isinstance(x, np.ndarray) else array(x) for x in inputs]
        return self.containers.call(self.spec, method, arrays, options, Cancellation())

    def lookup(self, keys, default):
        return self.call("lookup", keys, default)[0].tolist()

    @property
    def size(self):
        return int(self.call("size")[0])


def array(value):
    found = np.asarray(value)
    return found.astype(object) if found.dtype.kind == "S" else found


def test_a_table_agrees_with_a_dictionary():
    draw, t, model = random.Random(0), Handle(value_shape=(2,)), {}
    for _ in range(200):
        keys = [draw.randrange(60) for _ in range(draw.randrange(1, 9))]
        if draw.random() < 0.4:
            t.call("remove", keys)
            model = {k: v for k, v in model.items() if k not in keys}
        else:
            values = [[draw.randrange(99), k] for k in keys]
            t.call("insert", keys, values)
            model |= dict(zip(keys, values, strict=True))
        assert t.size == len(model)
        asked = [[draw.randrange(60), 1], [2, 3]]
        assert t.lookup(asked, [-1, -1]) == [[model.get(k, [-1, -1]) for k in r] for r in asked]
    names, values = t.call("export")
    assert dict(zip(names.tolist(), values.tolist(), strict=True)) == model
    t.call("import", [7], [[1, 2]])
    assert t.call("export")[0].tolist() == [7]


def test_texts_numbers_and_a_default_for_each_key():
    t = Handle(key="string", value="float32")
    t.call("insert", [b"a", b"b", b"a"], np.array([1, 2, 3], np.float32))
    assert t.lookup([b"a", b"c"], np.float32(-1)) == [3, -1]
    assert t.lookup([b"c", b"a"], np.array([8, 9], np.float32)) == [8, 3]
    with pytest.raises(ArgumentError, match="expected keys of type string, got int64"):
        t.call("lookup", [1], np.float32(0))
    with pytest.raises(ArgumentError, match=r"Expected shape \[1\] for value, got \[2\]"):
        t.call("insert", [b"a"], np.ones(2, np.float32))
    with pytest.raises(ArgumentError, match="expected values of type float32"):
        t.call("insert", [b"a"], [1])


def test_a_table_that_is_filled_once():
    t = Handle("HashTableV2", "string", "int64")
    with pytest.raises(UninitializedError, match="Table not initialized"):
        t.lookup([b"a"], 0)
    with pytest.raises(UninitializedError, match="Key a has 1 and trying to add value 2"):
        t.call("initialize", [b"a", b"a"], [1, 2])
    t.call("initialize", [b"a", b"b"], [1, 2])
    t.call("initialize", [b"a", b"b"], [1, 2])
    with pytest.raises(UninitializedError, match="already initialized with different data"):
        t.call("initialize", [b"a"], [1])
    assert t.lookup([[b"b", b"c"]], -1) == [[2, -1]]
    with pytest.raises(ArgumentError, match=r"expected one of .*, got 'insert'"):
        t.call("insert", [b"a"], [1])


def test_keys_that_are_vectors_and_keys_that_are_reserved():
    t = Handle("MutableDenseHashTableV2", empty_key=(0, 0), deleted_key=(9, 9), key_shape=(2,))
    t.call("insert", [[1, 2], [3, 4]], [5, 6])
    assert t.lookup([[3, 4], [4, 3]], -1) == [6, -1]
    for key, name in [([0, 0], "empty_key"), ([9, 9], "deleted_key")]:
        with pytest.raises(ArgumentError, match=f"Using the {name} as a table key"):
            t.lookup([key], 0)
    with pytest.raises(ArgumentError, match=r"Input key shape \[3\] is expected to end with"):
        t.lookup([1, 2, 3], 0)
    with pytest.raises(ArgumentError, match="cannot be equal"):
        Handle("MutableDenseHashTableV2", empty_key=0, deleted_key=0).call("size")


def test_tables_from_text_files(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("brain\t1\nsalad\t2\nsurgery\t3\n")

    def filled(value="int64", text=path, **options):
        t = Handle("HashTableV2", "string", value)
        t.call("initialize_from_text_file", array(str(text).encode()), **options)
        return t

    lines = filled(key_index=-2, value_index=-1)
    assert lines.lookup([b"salad\t2", b"salad"], -1) == [1, -1]
    columns = filled("float32", key_index=0, value_index=1)
    assert columns.lookup([b"surgery"], np.float32(0)) == [3]
    assert filled(key_index=0, value_index=-1, vocab_size=2).size == 2
    for value, options, text in [
        ("int64", {"key_index": -2, "value_index": -1, "vocab_size": 4}, "expected 4 but got 3"),
        ("int64", {"key_index": 2, "value_index": -1}, "Invalid number of columns .* expected 2"),
        ("int64", {"key_index": -2, "value_index": -2}, "requires table value dtype of string"),
        ("int64", {"key_index": 1, "value_index": 0}, "Field brain in line 0 is not a valid int64"),
        ("int64", {"key_index": -3, "value_index": 0}, "should be >= -2"),
    ]:
        with pytest.raises(ArgumentError, match=text):
            filled(value, **options)
    with pytest.raises(MissingError, match="No such file"):
        filled(text=tmp_path / "none", key_index=-2, value_index=-1)
    path.write_text("a\n\nb\n")
    with pytest.raises(ArgumentError, match="empty line found at position 1"):
        filled(key_index=-2, value_index=-1)
