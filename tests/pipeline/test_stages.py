"""Transformations yield what tf.data's yield; errors name the stage and element."""

import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from patience import eventually

from weft.errors import ArgumentError, DataError, DTypeError, ShapeError, TreeError, UserOpError
from weft.pipeline import AUTOTUNE, INFINITE, UNKNOWN, Permutation, Pipeline, element_random


def listed(pipeline):
    return [np.asarray(x).tolist() for x in pipeline]


@given(st.integers(1, 9000), st.integers(0, 2**64 - 1), st.integers(0, 2**40))
def test_a_permutation_has_every_place_once(size, seed, epoch):
    order = Permutation(size, seed, epoch)
    places = np.arange(size)
    found = order.take(places)
    assert sorted(found) == list(range(size))
    assert order[size - 1] == found[-1]
    some = places[:: max(size // 7, 1)][::-1]
    assert (order.take(some) == found[some]).all()


def test_permutations_are_uniform():
    # Each element at each position equally often: chi-squared of 49 cells, 36 degrees of freedom.
    counts = np.zeros((7, 7))
    for epoch in range(4000):
        counts[np.arange(7), Permutation(7, 5, epoch).take(np.arange(7))] += 1
    expected = 4000 / 7
    assert ((counts - expected) ** 2 / expected).sum() < 80
    order = Permutation(100_000, 1, 0).take(np.arange(100_000))
    assert abs(np.corrcoef(order, np.arange(100_000))[0, 1]) < 0.01
    assert abs(np.corrcoef(order[1:], order[:-1])[0, 1]) < 0.01


@given(st.data())
def test_views_and_streams_agree(data):
    """The same chain on a source with numbers and on one without gives the same."""
    indexed = Pipeline.range(data.draw(st.integers(0, 40)))
    streamed = Pipeline.from_generator(lambda source=indexed: source.as_numpy_iterator())
    for _ in range(data.draw(st.integers(1, 4))):
        kind = data.draw(st.sampled_from(["take", "skip", "shard", "map", "cat", "repeat"]))
        n = data.draw(st.integers(1, 7))
        step = {
            "take": lambda d, n=n: d.take(n * 5),
            "skip": lambda d, n=n: d.skip(n),
            "shard": lambda d, n=n: d.shard(n, n // 2),
            "map": lambda d, n=n: d.map(lambda x: x * n),
            "cat": lambda d, n=n: d.concatenate(Pipeline.range(n)),
            "repeat": lambda d, n=n: d.repeat(n % 3),
        }[kind]
        indexed, streamed = step(indexed), step(streamed)
    assert indexed.cardinality() == len(listed(indexed))
    assert listed(indexed) == listed(streamed)
    assert listed(indexed.batch(4)) == listed(streamed.batch(4))
    assert listed(indexed.batch(4, drop_remainder=True)) == listed(streamed.batch(4, True))


def test_order_does_not_depend_on_threads():
    def noisy(x):
        time.sleep((x * 7 % 5) * 2e-4)
        return x + element_random().integers(1000)

    found = []
    for threads in (None, 1, 4, AUTOTUNE):
        pipeline = Pipeline.range(60).shuffle(60).map(noisy, num_parallel_calls=threads)
        pipeline._seed = 4
        found.append(listed(pipeline))
    assert all(one == found[0] for one in found[1:])
    assert len({x % 7 for x in found[0]}) > 1


def test_shapes_of_elements():
    pairs = Pipeline.from_tensor_slices({"x": np.ones((5, 2)), "y": (np.arange(5), list("abcde"))})
    batch = next(iter(pairs.batch(3)))
    assert batch["x"].shape == (3, 2)
    assert batch["y"][1].tolist() == ["a", "b", "c"]
    element = next(iter(pairs))
    with pytest.raises(ValueError, match="read-only"):
        element["x"] += 1
    assert len(pairs) == 5
    assert pairs.repeat().cardinality() == INFINITE
    assert pairs.filter(bool).cardinality() == UNKNOWN
    with pytest.raises(TypeError, match="without end"):
        len(pairs.repeat())
    assert listed(Pipeline.range(5).shuffle(5).take(0)) == []
    assert list(Pipeline.from_tensor_slices(np.ones((0, 3))).shuffle(4).batch(2).repeat()) == []


def test_padded_batches():
    lengths = Pipeline.range(4).map(lambda n: {"x": np.arange(n), "n": n})
    batch = next(iter(lengths.padded_batch(4, {"x": [5], "n": []}, {"x": -1, "n": None})))
    assert batch["x"][2].tolist() == [0, 1, -1, -1, -1]
    assert batch["n"].tolist() == [0, 1, 2, 3]
    with pytest.raises(ShapeError, match=r"expected element\['x'\] within \(2,\), got \(3,\)"):
        list(lengths.padded_batch(4, {"x": [2], "n": []}))


def test_interleaving_takes_turns_as_tensorflow_does():
    def repeated(n):
        return Pipeline.from_tensors(n).repeat(6)

    found = listed(Pipeline.range(1, 6).interleave(repeated, cycle_length=2, block_length=4))
    assert "".join(map(str, found)) == "111122221122333344443344555555"
    threads = Pipeline.range(1, 6).interleave(repeated, 2, 4, num_parallel_calls=AUTOTUNE)
    assert listed(threads) == found
    assert listed(Pipeline.range(1, 4).flat_map(repeated))[5:8] == [1, 2, 2]
    with pytest.raises(DataError, match="expected abs to return a dataset, got int64 for element"):
        list(Pipeline.range(3).flat_map(abs))


def test_windows():
    def windows(*args):
        windows = Pipeline.range(7).window(*args)
        found = [listed(w) for w in windows]
        assert len(windows) == len(found)
        return found

    assert windows(3) == [[0, 1, 2], [3, 4, 5], [6]]
    assert windows(3, None, 1, True) == [[0, 1, 2], [3, 4, 5]]
    assert windows(3, 2, 1, True) == [[0, 1, 2], [2, 3, 4], [4, 5, 6]]
    assert windows(2, 3, 2) == [[0, 2], [3, 5], [6]]
    assert windows(2, 4) == [[0, 1], [4, 5]]
    pairs = next(iter(Pipeline.from_tensor_slices((np.arange(4), np.ones(4))).window(2)))
    assert listed(pairs[0]) == [0, 1]


def test_buckets():
    lengths = Pipeline.range(1, 9).map(lambda n: np.ones(n, int))
    bucketed = lengths.bucket_by_sequence_length(len, [3, 6], [2, 2, 2])
    assert [b.shape for b in bucketed] == [(2, 2), (2, 4), (2, 7), (1, 5), (1, 8)]
    bounded = lengths.take(5).bucket_by_sequence_length(
        len, [3, 6], [2, 2, 2], pad_to_bucket_boundary=True, drop_remainder=True
    )
    assert [b.shape for b in bounded] == [(2, 2), (2, 5)]
    with pytest.raises(ShapeError, match="as long as the last boundary"):
        list(lengths.bucket_by_sequence_length(len, [3], [2, 2], pad_to_bucket_boundary=True))
    with pytest.raises(ArgumentError, match="expected 3 batch sizes of 1 or more for 2"):
        lengths.bucket_by_sequence_length(len, [3, 6], [2, 2])


def test_samples_follow_weights_and_choices():
    zeros, ones = (Pipeline.from_tensors(n).repeat() for n in (0, 1))
    drawn = listed(Pipeline.sample_from_datasets([zeros, ones], [0.2, 0.8], seed=1).take(2000))
    assert abs(np.mean(drawn) - 0.8) < 0.03
    chosen = Pipeline.choose_from_datasets([zeros, ones], Pipeline.range(2).repeat(2))
    assert listed(chosen) == [0, 1, 0, 1]
    ended = Pipeline.sample_from_datasets([Pipeline.range(3), Pipeline.range(10, 13)], seed=3)
    assert sorted(listed(ended)) == [0, 1, 2, 10, 11, 12]


@pytest.mark.parametrize("threads", [None, 2])
def test_a_cache_is_filled_once(threads, tmp_path):
    calls = []

    def counted(x):
        calls.append(x)
        return {"x": np.full(3, x), "t": (str(x), b"b")}

    stored = Pipeline.range(9).map(counted, threads).cache()
    assert next(iter(stored))["t"] == ("0", b"b")
    first = [e["x"].tolist() for e in stored]
    calls.clear()
    assert [e["x"].tolist() for e in stored] == first == [[n] * 3 for n in range(9)]
    assert calls == []

    path = tmp_path / "elements"
    filed = Pipeline.range(9).map(counted, threads).cache(path)
    next(iter(filed))
    assert not path.exists()
    assert [e["t"] for e in filed] == [(str(n), b"b") for n in range(9)]
    assert path.exists()
    calls.clear()
    again = Pipeline.range(9).map(counted, threads).cache(path)
    assert len(again) == 9
    assert [e["x"].tolist() for e in again] == first
    assert calls == []
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(DataError, match="elements: the cache file is incomplete"):
        Pipeline.range(9).cache(path)
    with pytest.raises(DTypeError, match="expected arrays, numbers, strings or bytes"):
        list(Pipeline.range(2).map(lambda x: object()).cache(tmp_path / "other"))


def test_what_cannot_be_made_is_skipped_and_counted(capsys):
    source = Pipeline.range(6).map(lambda x: 6 // (x % 3)).ignore_errors(log_warning=True)
    assert listed(source) == [6, 3, 6, 3]
    assert source.skipped == 2
    assert source.batch(2).skipped == 2
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 2 or "skipped" in told[0]


def test_the_profile_names_the_slowest_stage():
    def slow(x):
        time.sleep(2e-3)
        return x

    for threads in (None, 2):
        pipeline = Pipeline.range(30).map(abs).map(slow, threads).batch(5).prefetch(2)
        profile = pipeline.profile()
        assert profile.slowest.name.startswith("map(slow")
        assert profile.slowest.calls == (30 if threads else 6)  # 6 batches at once
        assert "<- slowest" in str(profile)
        assert profile.elements == 6


def test_bad_elements_are_named():
    shapes = Pipeline.range(6).map(lambda n: np.zeros(3 if n == 4 else 2))
    with pytest.raises(ShapeError, match=r"shape \(2,\) as the first, got shape \(3,\) in place 4"):
        list(shapes.batch(6))
    mixed = Pipeline.from_sequence([(1, 2), (1, 2, 3)])
    with pytest.raises(TreeError, match="a tuple of 2, got a tuple of 3 in place 1"):
        list(mixed.batch(2))
    with pytest.raises(ShapeError, match=r"the same first dimension, got \[\(3,\), \(4,\)\]"):
        Pipeline.from_tensor_slices((np.ones(3), np.ones(4)))
    with pytest.raises(ArgumentError, match="batch: expected a batch size of 1 or more, got 0"):
        shapes.batch(0)
    with pytest.raises(ArgumentError, match="0 <= index < num_shards, got 3 of 3"):
        shapes.shard(3, 3)
    with pytest.raises(ArgumentError, match="expected a function that returns"):
        Pipeline.from_generator(iter([]))


@pytest.mark.parametrize("threads", [None, 2])
@pytest.mark.parametrize("source", [Pipeline.range(6), Pipeline.from_generator(lambda: range(6))])
def test_an_error_has_its_position_and_the_pass_continues(threads, source):
    def third(x):
        if x == 3:
            raise KeyError("label")
        return x

    running = iter(source.map(third, threads).prefetch(2))
    found = []
    with pytest.raises(KeyError, match="label") as caught:
        for x in running:
            found.append(int(x))
    assert found == [0, 1, 2]
    assert caught.value.__notes__ == ["raised by map(third) at element 3"]
    state = running.state_dict()
    assert [int(x) for x in running] == [4, 5]
    again = iter(source.map(third, threads).prefetch(2))
    again.load_state_dict(state)
    assert [int(x) for x in again] == [4, 5]


def test_stop_iteration_in_a_function_does_not_end_the_pass():
    with pytest.raises(UserOpError, match="raised StopIteration at 0"):
        list(Pipeline.range(3).map(lambda x: next(iter([]))))


def test_threads_end_with_the_pass():
    before = set(threading.enumerate())

    def started():
        return [t for t in threading.enumerate() if t not in before]

    running = iter(Pipeline.from_generator(lambda: iter(int, 1)).map(abs, 3).prefetch(2))
    next(running)
    assert started()
    running.close()
    forgotten = iter(Pipeline.from_generator(lambda: iter(int, 1)).map(abs, 3).prefetch(2))
    next(forgotten)
    del forgotten
    eventually(lambda: not started())


def test_prefetching_reads_ahead():
    read = []

    def source():
        for i in range(20):
            read.append(i)
            yield i

    running = iter(Pipeline.from_generator(source).prefetch(5))
    next(running)
    eventually(lambda: len(read) >= 6)
    assert len(read) == 6
    running.close()


def test_an_epoch_up_to_an_element_and_as_one_value():
    rows = Pipeline.from_tensor_slices((np.arange(6), np.arange(6) * 2))
    some = rows.take_while(lambda n, twice: n + twice < 9)
    assert [int(n) for n, _ in some] == [0, 1, 2]
    assert len(list(some.batch(2))) == 2
    assert some.cardinality() == -2
    assert rows.reduce(1, lambda total, row: total + int(row[1])) == 31
    assert rows.take(0).reduce("none", None) == "none"
