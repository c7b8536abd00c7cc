"""Datasets: seeds, tensors as arguments, what generators give, and what is refused."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import weft.tf1 as tf
from weft.errors import ArgumentError, DTypeError

Dataset = tf.data.Dataset


@pytest.fixture
def session() -> Iterator[Any]:
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def plain(x: Any) -> Any:
    if isinstance(x, dict):
        return {key: plain(value) for key, value in x.items()}
    return tuple(map(plain, x)) if isinstance(x, tuple) else np.asarray(x).tolist()


def taken(session: Any, dataset: Any, count: int = 100) -> list[Any]:
    """Elements up to the end; errors by name."""
    following = dataset.make_one_shot_iterator().get_next()
    found: list[Any] = []
    for _ in range(count):
        try:
            found.append(plain(session.run(following)))
        except tf.errors.OutOfRangeError:
            break
        except tf.errors.OpError as error:
            found.append(type(error).__name__)
    return found


def random(_: Any) -> Any:
    return tf.random_uniform([])


RANDOM: dict[str, Callable[[int | None, Path], Any]] = {
    "shuffle": lambda seed, _: Dataset.range(20).shuffle(20, seed=seed),
    "buffer": lambda seed, _: Dataset.range(20).filter(lambda x: x >= 0).shuffle(9, seed).repeat(2),
    "map": lambda seed, _: Dataset.range(6).map(lambda _: tf.random_uniform([], seed=seed)),
    "filter": lambda seed, _: Dataset.range(40).filter(
        lambda _: tf.random_uniform([], seed=seed) < 0.5
    ),
    "flat_map": lambda seed, _: Dataset.range(6).flat_map(
        lambda _: Dataset.from_tensors(tf.random_uniform([], seed=seed))
    ),
    "inner": lambda seed, _: Dataset.range(2).interleave(
        lambda _: Dataset.range(20).shuffle(20, seed=seed), 2
    ),
    "files": lambda seed, folder: Dataset.list_files(f"{folder}/*", seed=seed),
}


@pytest.mark.parametrize("name", RANDOM)
def test_seeds_decide_what_is_random(name: str, tmp_path: Path) -> None:
    for i in range(12):
        (tmp_path / f"file{i}").touch()

    def run(graph_seed: int | None, seed: int | None) -> list[Any]:
        with tf.Graph().as_default(), tf.Session() as session:
            tf.set_random_seed(graph_seed)
            return taken(session, RANDOM[name](seed, tmp_path))

    found = [run(38, None), run(38, 5), run(None, 5), run(39, None), run(38, 6), run(None, None)]
    assert [run(38, None), run(38, 5), run(None, 5)] == found[:3]
    assert len({str(x) for x in found}) == len(found)
    assert run(None, None) != found[-1]


def test_passes_of_an_iterator(session: Any) -> None:
    """Initialized again, seeded numbers are the same; repeated, they go on."""

    def passes(dataset: Any, size: int) -> list[list[Any]]:
        iterator = dataset.make_initializable_iterator()
        following = iterator.get_next()
        found: list[list[Any]] = []
        for _ in range(2):
            session.run(iterator.initializer)
            found.append([plain(session.run(following)) for _ in range(size)])
        return found

    first, second = passes(Dataset.range(3).map(random), 3)
    assert first != second
    tf.set_random_seed(1)
    first, second = passes(Dataset.range(3).map(random).repeat(2), 6)
    assert first == second
    assert len(set(first)) == 6
    first, second = passes(Dataset.range(9).shuffle(9).repeat(2), 18)
    assert first == second
    assert first[:9] != first[9:]
    assert passes(Dataset.range(9).shuffle(9), 9)[0] != passes(Dataset.range(9).shuffle(9), 9)[0]


def test_queues_follow_the_seed() -> None:
    def run(seed: int | None) -> list[Any]:
        with tf.Graph().as_default(), tf.Session() as session:
            tf.set_random_seed(seed)
            (x,) = tf.train.slice_input_producer([np.arange(30)], num_epochs=2)
            drawn = tf.train.shuffle_batch([x], 10, 40, 20)
            coordinator = tf.train.Coordinator()
            threads = tf.train.start_queue_runners(session, coordinator)
            found = [plain(session.run(drawn)) for _ in range(2)]
            coordinator.request_stop()
            coordinator.join(threads)
            return found

    assert run(3) == run(3)
    assert run(3) != run(4)
    assert run(None) != run(None)


def test_tensors_as_arguments(session: Any) -> None:
    two, n = tf.constant(2), lambda x: tf.cast(x, tf.int64)
    spread = lambda x: Dataset.from_tensors(x).repeat(x)  # noqa: E731
    cases = [
        (Dataset.range(1, 4).flat_map(lambda x: Dataset.range(x)), [0, 0, 1, 0, 1, 2]),
        (Dataset.range(1, 3).flat_map(spread), [1, 2, 2]),
        (Dataset.range(5).batch(two).take(tf.constant(1)).repeat(n(two)), [[0, 1], [0, 1]]),
        (Dataset.from_tensor_slices(tf.range(3)).skip(n(tf.range(3)[1])), [1, 2]),
        (
            Dataset.range(1, 3).flat_map(lambda x: Dataset.from_tensor_slices(tf.range(x))),
            [0, 0, 1],
        ),
        (Dataset.range(2).interleave(lambda x: Dataset.range(x + 1), two, two), [0, 0, 1]),
        (Dataset.range(10).shard(n(two) + 1, n(two)).prefetch(n(two)), [2, 5, 8]),
        (Dataset.from_tensor_slices(["a", "b"]).flat_map(Dataset.from_tensors), [b"a", b"b"]),
        (Dataset.range(2).flat_map(lambda _: Dataset.from_tensors(["a", "b"])), [[b"a", b"b"]] * 2),
        (Dataset.range(n(two), n(two) * 3, two), [2, 4]),
        (Dataset.from_generator(lambda a: iter(a), tf.int32, args=[tf.range(2)]), [0, 1]),
        (Dataset.range(9).shuffle(n(two), seed=n(two)).filter(lambda x: x > 7), [8]),
    ]
    for number, (dataset, expected) in enumerate(cases):
        assert taken(session, dataset) == expected, number
    assert Dataset.range(5).batch(two, drop_remainder=True).output_shapes.as_list() == [2]


def test_fed_arguments(session: Any) -> None:
    count = tf.placeholder(tf.int64, [])
    dataset = Dataset.range(10).skip(count).take(count + 1).batch(count)
    iterator = dataset.make_initializable_iterator()
    following = iterator.get_next()
    for n, expected in ((2, [2, 3]), (3, [3, 4, 5])):
        session.run(iterator.initializer, {count: n})
        assert plain(session.run(following)) == expected
    for given in (count, tf.Variable(1), tf.random_uniform([], 0, 3, tf.int32)):
        with pytest.raises(tf.errors.InvalidArgumentError, match="use make_initializable_iterator"):
            Dataset.range(3).take(given).make_one_shot_iterator()


BAD = "InvalidArgumentError"
GENERATED: list[tuple[list[Any], Any, Any, list[Any]]] = [
    (
        [(1, 2), 3, (4, 5, 6), [7, 8], ("a", 1), (9, 10)], (tf.int64, tf.int64), None,
        [(1, 2), *[BAD] * 4, (9, 10)],
    ),
    ([[1.0, 2.0], [3.0]], tf.float32, [None], [[1, 2], [3]]),
    ([[1, 2], [[1, 2]], ["a"], [1]], tf.int64, [None], [[1, 2], BAD, BAD, [1]]),
    ([[[1, 2], [3, 4]]], tf.int32, None, [[[1, 2], [3, 4]]]),
    ([["a", "bb"], "c", 3], tf.string, None, [[b"a", b"bb"], b"c", BAD]),
    ([([1, 2], ["x"])], (tf.int32, tf.string), ([2], [1]), [([1, 2], [b"x"])]),
    ([{"a": [1]}, {"b": [1]}, {"a": [2]}], {"a": tf.int32}, None, [{"a": [1]}, BAD, {"a": [2]}]),
]  # fmt: skip


@pytest.mark.parametrize(("elements", "types", "shapes", "expected"), GENERATED)
def test_what_a_generator_gives(
    elements: Any, types: Any, shapes: Any, expected: Any, session: Any
) -> None:
    found = taken(session, Dataset.from_generator(lambda: iter(elements), types, shapes))
    assert found == expected


def test_arguments_that_do_not_fit(session: Any, tmp_path: Path) -> None:
    base = Dataset.range(3)
    for dataset in (base.batch(0), base.shard(0, 0), base.prefetch(-2), base.shuffle(0)):
        with pytest.raises(tf.errors.InvalidArgumentError, match="expected"):
            session.run(dataset.make_one_shot_iterator().get_next())
    for other in (Dataset.from_tensors(1.0), Dataset.from_tensors((np.int64(1),))):
        with pytest.raises(DTypeError, match="concatenate: expected elements of int64, got"):
            base.concatenate(other)
    joined = Dataset.from_tensors([1, 2]).concatenate(Dataset.from_tensors([1, 2, 3]))
    assert joined.output_shapes.as_list() == [None]
    assert taken(session, joined) == [[1, 2], [1, 2, 3]]

    empty = Dataset.list_files(f"{tmp_path}/*")
    assert taken(session, empty) == []
    iterator = empty.make_initializable_iterator()
    with pytest.raises(tf.errors.InvalidArgumentError, match="no files matched"):
        session.run(iterator.initializer)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: tf.matrix_diag(x, k=1), ArgumentError, "matrix_diag: expected k=0"),
        (lambda x: tf.matrix_diag(x, offset=1), DTypeError, "unexpected argument 'offset'"),
        (lambda x: tf.layers.batch_normalization(x, renorm=True), ArgumentError, "renorm=False"),
        (lambda x: tf.decode_jpeg(tf.constant(b""), ratio=2), ArgumentError, "ratio=1"),
        (lambda x: tf.nn.rnn_cell.GRUCell(2, unit=3), DTypeError, "unexpected argument 'unit'"),
        (lambda x: tf.Variable(x, variable_def=3), ArgumentError, "no variable_def"),
        (lambda x: tf.train.Saver([tf.Variable(x)], builder=3), ArgumentError, "builder=None"),
    ],
)
def test_arguments_without_effect_are_refused(
    call: Any, error: Any, text: str, session: Any
) -> None:
    with pytest.raises(error, match=text):
        call(tf.ones([2, 2]))


def test_cells_that_are_not_trained(session: Any) -> None:
    tf.nn.dynamic_rnn(
        tf.nn.rnn_cell.GRUCell(2, trainable=False), tf.ones([1, 2, 3]), dtype=tf.float32
    )
    assert len(tf.global_variables()) == 4
    assert tf.trainable_variables() == []


class Pair(NamedTuple):
    a: Any
    b: Any


def test_named_tuples_are_one_argument(session: Any) -> None:
    pairs = Dataset.from_tensor_slices(Pair(np.arange(3), np.arange(3) * 2))
    found = pairs.filter(lambda p: p.a > 0).map(lambda p: Pair(p.a + p.b, p.b)).batch(2)
    following = found.make_one_shot_iterator().get_next()
    assert isinstance(following, Pair)
    assert plain(session.run(following)) == ([3, 6], [2, 4])


def test_files_that_a_constant_names(session: Any, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("one\ntwo\n")
    name = tf.constant(f"{tmp_path}/x")
    assert taken(session, tf.data.TextLineDataset(name)) == [b"one", b"two"]
    assert taken(session, Dataset.list_files(name, shuffle=False)) == [f"{tmp_path}/x".encode()]
