"""Variables in parts: getting, reading, lookups, gradients, checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft.tf1 as tf
from weft import errors

FULL = np.arange(52.0, dtype=np.float32).reshape(13, 4)
PARTS = 5


def _table(strategy: str) -> Any:
    if strategy == "div":
        return tf.get_variable("t", initializer=FULL, partitioner=tf.fixed_size_partitioner(PARTS))
    return [tf.get_variable(f"t{i}", initializer=FULL[i::PARTS]) for i in range(PARTS)]


def _ids_of(strategy: str, part: int) -> Any:
    ids = np.arange(len(FULL))
    return ids[part::PARTS] if strategy == "mod" else np.split(ids, [3, 6, 9, 11])[part]


def test_partitioners() -> None:
    shape = tf.TensorShape([1000, 64])
    assert tf.fixed_size_partitioner(3, axis=1)(shape=shape, dtype=tf.float32) == [1, 3]
    by_size = tf.variable_axis_size_partitioner(1 << 16, max_shards=3)
    assert by_size(shape=shape, dtype=tf.float64) == [3, 1]
    at_least = tf.min_max_variable_partitioner(8, min_slice_size=1 << 16)
    assert at_least(shape=shape, dtype=tf.float32) == [4, 1]
    with pytest.raises(errors.ArgumentError, match="expected max_shard_bytes >= 1, got 0"):
        tf.variable_axis_size_partitioner(0)


def test_shared_and_refused() -> None:
    with tf.variable_scope("s", partitioner=tf.fixed_size_partitioner(2)):
        v = tf.get_variable("v", [5, 3], initializer=tf.ones_initializer())
        scalar = tf.get_variable("n", [], tf.int32)
    assert [part.name for part in v] == ["s/v/part_0:0", "s/v/part_1:0"]
    assert [part.slice_info.spec for part in v] == ["5 3 0,3:0,3", "5 3 3,2:0,3"]
    assert isinstance(scalar, tf.Variable)
    with tf.variable_scope("s", reuse=True):
        assert tf.get_variable("v", [5, 3]) is v
        with pytest.raises(errors.GraphError, match=r"has parts \[2, 1\], expected \[3, 1\]"):
            tf.get_variable("v", [5, 3], partitioner=tf.fixed_size_partitioner(3))
    with tf.variable_scope("s"):
        with pytest.raises(errors.GraphError, match="'s/v' exists in parts"):
            tf.get_variable("v", [5, 3])
        with pytest.raises(errors.GraphError, match="numbers of parts, of which one may be above"):
            tf.get_variable("w", [4, 4], partitioner=lambda shape, dtype: [2, 2])


def test_initializers_know_the_whole() -> None:
    seen: list[Any] = []

    def initializer(shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        seen.append((list(shape), partition_info.full_shape, partition_info.var_offset))
        return tf.zeros(shape, dtype)

    tf.get_variable("v", [3, 4], None, initializer, partitioner=tf.fixed_size_partitioner(2, 1))
    assert seen == [([3, 2], [3, 4], [0, 0]), ([3, 2], [3, 4], [0, 2])]
    wide = tf.variance_scaling_initializer(distribution="uniform")  # by the whole fan in, 400
    parts = tf.get_variable("w", [400, 9], None, wide, partitioner=tf.fixed_size_partitioner(10))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        largest = np.abs(session.run(parts.as_tensor())).max()
    assert 0.9 * np.sqrt(3 / 400) < largest <= np.sqrt(3 / 400)


@pytest.mark.parametrize("strategy", ["mod", "div"])
def test_lookup_and_its_gradient(strategy: str) -> None:
    table = _table(strategy)
    ids = tf.placeholder(tf.int64, [None, 3])
    found = tf.nn.embedding_lookup(table, ids, strategy)
    slopes = tf.gradients(tf.reduce_sum(tf.square(found)), list(table))
    given = np.array([[7, 7, 12], [0, 3, 11]])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        rows, slopes = session.run([found, slopes], {ids: given})
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"partition_sizes: .*got -1"):
            session.run(found, {ids: [[0, 1, -1]]})
    assert np.array_equal(rows, FULL[given])
    whole = np.zeros_like(FULL)
    np.add.at(whole, given, 2 * FULL[given])
    for part, slope in enumerate(slopes):
        dense = np.zeros((len(_ids_of(strategy, part)), 4), np.float32)
        np.add.at(dense, slope.indices, slope.values)
        assert np.array_equal(dense, whole[_ids_of(strategy, part)])


@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
@pytest.mark.parametrize("weighted", [False, True])
def test_sparse_lookup(combiner: str, weighted: bool) -> None:
    places, ids = [[0, 0], [0, 1], [1, 0], [3, 2]], [3, 12, 3, 0]
    weights = [1.0, 2.0, 0.5, 4.0] if weighted else [1.0] * 4
    sparse = tf.SparseTensor(places, ids, [4, 3])
    beside = tf.SparseTensor(places, weights, [4, 3]) if weighted else None
    table = _table("div")
    found = tf.nn.embedding_lookup_sparse(table, sparse, beside, "div", combiner=combiner)
    safe = tf.nn.safe_embedding_lookup_sparse(table, sparse, beside, combiner)
    given = tf.nn.safe_embedding_lookup_sparse(table, sparse, beside, combiner, default_id=7)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        rows, safe, given = session.run([found, safe, given])
    power = {"sum": 0, "mean": 1, "sqrtn": 2}[combiner]
    expected = np.zeros((4, 4))
    for row in (0, 1, 3):
        own = [i for i, (at, _) in enumerate(places) if at == row]
        scale = sum(weights[i] ** power for i in own) ** (1 / max(power, 1)) if power else 1
        expected[row] = sum(FULL[ids[i]] * weights[i] for i in own) / scale
    np.testing.assert_allclose(rows[[0, 1, 3]], expected[[0, 1, 3]], rtol=1e-6)
    np.testing.assert_allclose(safe, expected, rtol=1e-6)
    expected[2] = FULL[7]
    np.testing.assert_allclose(given, expected, rtol=1e-6)


def test_safe_lookup_leaves_out_negative_ids() -> None:
    ids = tf.SparseTensor([[0, 0, 0], [0, 1, 0], [1, 0, 1]], [5, -1, 2], [2, 2, 2])
    found = tf.nn.safe_embedding_lookup_sparse(tf.constant(FULL), ids)
    with tf.Session() as session:
        rows = session.run(found)
    expected = np.zeros((2, 2, 4))
    expected[0, 0], expected[1, 0] = FULL[5], FULL[2]
    assert np.array_equal(rows, expected)


@pytest.mark.parametrize("options", [{}, {"write_version": 2}, {"sharded": True}])
def test_saved_whole_restored_in_other_parts(tmp_path: Path, options: Any) -> None:
    path = str(tmp_path / "model")
    two = tf.ConfigProto(device_count={"CPU": 2})
    with tf.Graph().as_default(), tf.Session(config=two) as session:
        with tf.device("/cpu:0"):
            tf.Variable(tf.ones([3]), name="u")
        with tf.device("/cpu:1"):
            _table("div")
            tf.contrib.lookup.MutableHashTable(tf.string, tf.int64, -1)  # saved as well
        session.run(tf.global_variables_initializer())
        tf.train.Saver(**options).save(session, path)
    assert len(list(tmp_path.glob("model.data*"))) == {0: 0, 1: 1}[len(options)] + (
        "sharded" in options
    )
    for count, axis in ((1, 0), (3, 0), (2, 1)):
        with tf.Graph().as_default(), tf.Session() as session:
            parts = tf.get_variable(
                "t", [13, 4], partitioner=tf.fixed_size_partitioner(count, axis)
            )
            tf.train.Saver({"t": parts}).restore(session, path)
            assert np.array_equal(session.run(parts.as_tensor()), FULL)
    with tf.Graph().as_default(), tf.Session() as session:
        whole = tf.get_variable("t", [13, 4])
        tf.train.Saver([whole]).restore(session, path)
        assert np.array_equal(session.run(whole), FULL)


def test_lookups_are_compiled_for_few_sizes_and_touch_their_rows_only() -> None:
    table = tf.get_variable("t", [999, 4], partitioner=tf.fixed_size_partitioner(3))
    ids = tf.placeholder(tf.int32, [None])
    rows = tf.nn.embedding_lookup(table, ids, "div")
    train = tf.train.AdagradOptimizer(0.1).minimize(tf.reduce_sum(tf.square(rows)))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        random, programs = np.random.default_rng(0), set[int]()
        for _ in range(12):
            before = np.concatenate(session.run(list(table)))
            given = np.concatenate([random.choice(333, 5, False), 333 + random.choice(333, 8)])
            expected = before[given]  # of the last part there is none
            assert np.array_equal(session.run(rows, {ids: given}), expected)
            programs.add(id(session.program(rows, {ids: given})))
            session.run(train, {ids: given})
            changed = np.concatenate(session.run(list(table))) != before
            assert sorted(set(given.tolist())) == np.flatnonzero(changed.any(axis=1)).tolist()
        assert len(programs) == 1
