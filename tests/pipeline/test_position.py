"""A pass that is stopped anywhere and resumed yields the elements of an uninterrupted one."""

import json
import pickle
import random
import time
from fractions import Fraction

import numpy as np
import pytest

import weft as wf
from weft.errors import StateError
from weft.pipeline import Pipeline

ROWS = np.arange(57)


def plain(element):
    """An element as nested lists, for comparison."""
    if isinstance(element, tuple):
        return [plain(x) for x in element]
    if isinstance(element, dict):
        return {k: plain(x) for k, x in element.items()}
    return np.asarray(element).tolist()


def generated():
    yield from (np.int64(i) for i in range(57))


def slow(x):
    time.sleep(x % 3 * 1e-4)  # threads finish in another order
    return x * 2


def odd(x):
    if x % 2 == 0:
        raise ValueError("even")
    return x


def slices():
    return Pipeline.from_tensor_slices({"a": ROWS, "b": (ROWS * 2.0,)})


def stream():
    return Pipeline.from_generator(generated)


PIPELINES = {
    "views": lambda: slices().shuffle(57).batch(4).repeat(3),
    "batch over epochs": lambda: slices().shuffle(57).repeat(3).batch(5).prefetch(3),
    "endless": lambda: slices().shuffle(57).repeat().batch(8).take(40),
    "buffer": lambda: stream().shuffle(13).repeat(2).batch(3),
    "threads": lambda: stream().map(slow, 3).shuffle(7).batch(2).prefetch(2).repeat(2),
    "selection": lambda: stream().filter(lambda x: x % 3 > 0).skip(3).shard(2, 1).enumerate(),
    "take while": lambda: stream().take_while(lambda x: x < 40).repeat(2).prefetch(3),
    "zip": lambda: Pipeline.zip((stream().shuffle(5), slices().shuffle(9))).prefetch(4),
    "concatenate": lambda: stream().concatenate(Pipeline.range(9).shuffle(9)).repeat(2),
    "sample": lambda: Pipeline.sample_from_datasets([stream(), Pipeline.range(70, 99)], [2, 1]),
    "nested prefetch": lambda: stream().prefetch(2).map(slow, 2).prefetch(5).batch(3),
    "flat map": lambda: stream().flat_map(lambda n: Pipeline.range(n % 4).shuffle(4)).batch(3),
    "interleave": lambda: (
        stream().interleave(lambda n: Pipeline.range(n, n + n % 5).shuffle(3), 3, 2).prefetch(2)
    ),
    "interleave, threads": lambda: (
        slices().interleave(lambda row: Pipeline.range(row["a"] % 4), 4, 1, 2).map(slow, 2)
    ),
    "window": lambda: stream().window(5, 2, 2).flat_map(lambda w: w.batch(5)).repeat(2),
    "bucket": lambda: (
        stream()
        .map(lambda n: np.arange(n % 9))
        .bucket_by_sequence_length(len, [3, 6], [4, 3, 2])
        .prefetch(2)
    ),
    "cache": lambda: stream().shuffle(9).cache().map(slow, 2).repeat(3).batch(4),
    "cached views": lambda: slices().cache().shuffle(9).repeat(2),
    "ignored": lambda: stream().map(odd).ignore_errors().prefetch(2),
    "unbatch": lambda: stream().batch(7).unbatch().padded_batch(4).prefetch(1),
}


def shuffles(stages):
    """Whether epochs differ."""
    return "shuffle" in str(stages) and "'cache', ['shuffle'" not in str(stages)


@pytest.mark.parametrize("name", PIPELINES)
def test_stops_and_resumes_leave_no_trace(name):
    whole = PIPELINES[name]()
    start = whole.state_dict()
    expected = [plain(x) for x in whole]
    assert [plain(x) for x in whole] != expected or not shuffles(start["stages"])
    chance = random.Random(name)
    for _ in range(20):  # 200 stops and more over all pipelines
        found, state = [], start
        while len(found) < len(expected):
            pipeline = PIPELINES[name]()
            pipeline.load_state_dict(state)
            running = iter(pipeline)
            for _ in range(chance.randrange(len(expected) // 2 + 2)):
                found.extend(plain(x) for x in [next(running, None)] if x is not None)
            state = pipeline.state_dict() if chance.random() < 0.5 else running.state_dict()
            state = json.loads(json.dumps(state))  # a state is plain, after any stage
            running.close()
        assert found == expected
    assert next(running, None) is None


KINDS = [
    lambda n: np.arange(n, dtype="f4").reshape(1, n) / 3,
    lambda n: (n, {"a": np.float16(n) / 7, "b": [n, None, True]}),
    lambda n: {"text": str(n), "bytes": bytes([n]), 3: np.array([str(n), "x"]), "inf": np.inf},
    lambda n: np.array([n, "x", b"y", (1, 2)], object),
    lambda n: (np.datetime64(n, "D"), n + 2j, np.complex64(1j), np.bool_(n), np.array(n)),
    lambda n: np.array([n]).astype(wf.bfloat16.numpy),
]


@pytest.mark.parametrize("kind", KINDS)
def test_held_elements_are_saved_as_they_are(kind):
    def made():
        return Pipeline.from_generator(lambda: map(kind, range(9))).shuffle(5, seed=1)

    running = iter(made())
    next(running)
    again = iter(made())
    again.load_state_dict(json.loads(json.dumps(running.state_dict())))
    for found, expected in zip(again, running, strict=True):
        assert repr(found) == repr(expected)
        assert str(types(found)) == str(types(expected))


def types(x):
    if isinstance(x, list | tuple):
        return type(x), [types(part) for part in x]
    if isinstance(x, dict):
        return {key: types(part) for key, part in x.items()}
    return type(x), getattr(x, "dtype", None), getattr(x, "shape", None)


def test_other_held_elements_are_no_json_but_can_be_pickled():
    def made():
        return Pipeline.from_generator(lambda: map(Fraction, range(9))).shuffle(5, seed=1)

    running = iter(made())
    next(running)
    state = running.state_dict()
    with pytest.raises(TypeError, match="not JSON serializable"):
        json.dumps(state)
    again = iter(made())
    again.load_state_dict(pickle.loads(pickle.dumps(state)))
    assert list(again) == list(running)


def test_between_epochs_the_state_is_the_next_epochs():
    pipeline = slices().shuffle(57, seed=3).batch(10)
    list(pipeline)
    state = pipeline.state_dict()
    second = [plain(x) for x in pipeline]
    other = slices().shuffle(57, seed=3).batch(10)
    other.load_state_dict(state)
    assert [plain(x) for x in other] == second
    assert [plain(x) for x in other] != second  # the third


def test_a_state_of_another_pipeline_raises():
    state = slices().shuffle(57).batch(4).state_dict()
    with pytest.raises(StateError, match=r"expected the state of this pipeline, batch\(8\) < shu"):
        slices().shuffle(57).batch(8).load_state_dict(state)
    with pytest.raises(StateError, match="version 1 or older, got version 2"):
        slices().load_state_dict({**state, "version": 2})
    with pytest.raises(StateError, match="expected a pipeline's state, got 5"):
        slices().load_state_dict(5)


def test_an_iterable_with_a_state_of_its_own_is_not_read_again():
    class Own:
        reads = 0

        def __init__(self):
            self.at = 0

        def __iter__(self):
            return self

        def __next__(self):
            Own.reads += 1
            self.at += 1
            if self.at > 50:
                raise StopIteration
            return self.at

        def state_dict(self):
            return {"at": self.at}

        def load_state_dict(self, state):
            self.at = state["at"]

    running = iter(Pipeline.from_generator(Own))
    for _ in range(30):
        next(running)
    Own.reads = 0
    again = iter(Pipeline.from_generator(Own))
    again.load_state_dict(running.state_dict())
    assert next(again) == 31
    assert Own.reads == 1
