"""Accumulators: stale gradients, means and sums, waiting, checks."""

import threading

import numpy as np
import pytest
from patience import LIMIT, eventually, waits

import weft.resource  # noqa: F401 -- the kinds
from weft.errors import ArgumentError, CancelledError
from weft.ops.resource.spec import ResourceSpec
from weft.resource.base import Cancellation, Containers


class Handle:
    def __init__(self, kind="ConditionalAccumulator", shape=(2,), reduction="MEAN"):
        pairs = {"dtype": "float32", "shape": shape, "reduction_type": reduction}
        self.spec = ResourceSpec(kind, "a", "", tuple(pairs.items()))
        self.containers, self.cancel = Containers(), Cancellation()

    def call(self, method, *inputs):
        return self.containers.call(self.spec, method, [np.asarray(x) for x in inputs], {},
                                    self.cancel)  # fmt: skip

    def apply(self, step, *gradient):
        *others, values = gradient[:2]
        arrays = [np.asarray(x, np.int64) for x in others]
        told = [np.asarray(x) for x in gradient[2:]]
        self.call("apply_gradient", step, *arrays, np.asarray(values, np.float32), *told)

    def take(self, count):
        return [x.tolist() for x in self.call("take_gradient", count)]

    @property
    def counts(self):
        return tuple(int(self.call(m)[0]) for m in ("num_accumulated", "num_stale"))


@pytest.mark.parametrize(("reduction", "factor"), [("MEAN", 0.5), ("SUM", 1)])
def test_stale_gradients_are_dropped_and_counted(reduction, factor):
    a = Handle(reduction=reduction)
    a.apply(0, [1, 2])
    a.apply(5, [3, 6])  # of a later step: counts
    assert a.counts == (2, 0)
    assert a.take(1) == [[4 * factor, 8 * factor]]
    a.apply(0, [100, 100])  # the take has begun step 1
    assert a.counts == (0, 1)
    a.call("set_global_step", 7)
    a.apply(6, [100, 100])
    a.apply(7, [1, 1])
    assert a.counts == (1, 2)
    assert a.take(1) == [[1, 1]]


def test_rows_of_one_index_are_added_and_a_mean_is_over_those_who_have_it():
    a = Handle("SparseConditionalAccumulator", (4, 2))
    a.apply(0, [2, 0], [[2, 2], [4, 4]])
    a.apply(0, [2, 3, 2], [[1, 1], [5, 5], [3, 3]], [4, 2])
    assert a.take(2) == [[0, 2, 3], [[4, 4], [3, 3], [5, 5]], [4, 2]]
    a.apply(1, [1], [[1, 1]])
    assert a.take(1) == [[1], [[1, 1]], [4, 2]]


def test_who_takes_waits_until_enough_have_come():
    a, found = Handle(), []
    waiting = [threading.Thread(target=lambda: found.append(a.take(3))) for _ in range(2)]
    for thread in waiting:
        thread.start()
    for number in range(6):
        assert len(found) <= number // 3
        a.apply(1, [number, 0])
    for thread in waiting:
        thread.join(LIMIT)
    assert sorted(found) == [[[1, 0]], [[4, 0]]]


def test_a_wait_is_cancelled():
    a, raised = Handle(), []

    def take():
        try:
            a.take(1)
        except CancelledError as error:
            raised.append(str(error))

    thread = threading.Thread(target=take)
    thread.start()
    eventually(lambda: waits(thread))
    a.cancel.cancel()
    thread.join(LIMIT)
    assert raised == ["TakeGrad operation was cancelled"]


@pytest.mark.parametrize(
    ("shape", "gradient", "text"),
    [
        ((2,), ([1, 2, 3],), r"expected \[2\], got \[3\]"),
        ((2, None), ([0], [[1, 2]], [2]), "shape rank at least 2, got 1"),
        ((2, None), ([0], [[1, 2]], [3, 2]), "shape dim 0 to be 2, got 3"),
        ((2, None), ([2], [[1, 2]]), "index of slice 0 exceeded limits of shape; index is 2"),
        ((2, None), ([-1], [[1, 2]]), "index is -1"),
        ((2, None), ([0], [1]), "values rank at least 2, got 1"),
        ((2, 3), ([0], [[1, 2]]), "values dim 1 to be 3, got 2"),
        ((2, 3), ([[0]], [[1, 2]]), r"should be vector but received shape: \[1,1\]"),
        ((2, 3), ([0], 1), "Values cannot be 0-dimensional"),
        ((2, 3), ([0, 1], [[1, 2, 3]]), "Expected 2 non-empty input values, got 1"),
    ],
)
def test_what_does_not_fit_is_refused(shape, gradient, text):
    a = Handle("ConditionalAccumulator" if len(gradient) == 1 else
               "SparseConditionalAccumulator", shape)  # fmt: skip
    with pytest.raises(ArgumentError, match=text):
        a.apply(0, *gradient)
    with pytest.raises(ArgumentError, match="num_required must be positive, but was 0"):
        a.take(0)
    assert a.counts == (0, 0)


def test_gradients_must_fit_those_before():
    a = Handle(shape=None)
    a.apply(0, [1, 2])
    with pytest.raises(ArgumentError, match=r"expected \[2\], got \[3\]"):
        a.apply(0, [1, 2, 3])
    assert a.take(1) == [[1, 2]]
    a.apply(1, [1, 2, 3])


def test_gradients_of_sixteen_threads_are_all_there():
    a = Handle(reduction="SUM")

    def work():
        for _ in range(100):
            a.apply(10**6, [1, 2])

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    total = np.zeros(2)
    while total[0] < 1600:
        total += a.take(1)[0]
    for thread in threads:
        thread.join(LIMIT)
    assert total.tolist() == [1600, 3200] and a.counts == (0, 0)
