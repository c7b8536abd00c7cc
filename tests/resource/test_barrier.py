"""Barriers: elements are taken when complete, in the order in which their keys came."""

import threading

import numpy as np
import pytest
from patience import LIMIT

import weft.resource  # noqa: F401 -- the kinds
from weft.errors import ArgumentError, CancelledError, EndOfDataError
from weft.ops.resource.spec import ResourceSpec
from weft.resource.base import Cancellation, Containers

FIRST = -(2**63)


class Handle:
    def __init__(self):
        pairs = {"dtypes": ("string", "int64"), "shapes": ((), (2,))}
        self.spec = ResourceSpec("Barrier", "b", "", tuple(pairs.items()))
        self.containers, self.cancel = Containers(), Cancellation()

    def call(self, method, *inputs, **options):
        arrays = [np.asarray(x) for x in inputs]
        return self.containers.call(self.spec, method, arrays, options, self.cancel)

    def insert(self, component, keys, values):
        names = np.array([k.encode() for k in keys] or [], object)
        dtype = np.int64 if component else object
        self.call("insert_many", names, np.array(values, dtype), component_index=component)

    def take(self, count, smaller=False):
        return [x.tolist() for x in self.call("take_many", count, allow_small_batch=smaller)]

    @property
    def sizes(self):
        return tuple(int(self.call(m)[0]) for m in ("ready_size", "incomplete_size"))


def test_elements_leave_complete_in_the_order_of_their_keys():
    b = Handle()
    b.insert(0, ["k1", "k2"], [b"a", b"b"])
    b.insert(1, ["k1"], [[1, 1]])
    b.insert(0, ["k3"], [b"c"])
    b.insert(1, ["k3"], [[3, 3]])
    b.insert(1, ["k2"], [[2, 2]])
    assert b.sizes == (3, 0)
    assert b.take(2) == [[FIRST] * 2, [b"k1", b"k2"], [b"a", b"b"], [[1, 1], [2, 2]]]
    assert b.take(1) == [[FIRST + 1], [b"k3"], [b"c"], [[3, 3]]]


def test_a_closed_barrier_takes_what_completes_and_no_new_key():
    b, found = Handle(), []
    b.insert(0, ["k1", "k2"], [b"a", b"b"])
    b.call("close")
    with pytest.raises(CancelledError, match="already closed"):
        b.call("close")
    with pytest.raises(CancelledError, match="brand new key: k3"):
        b.insert(0, ["k3"], [b"c"])
    with pytest.raises(EndOfDataError, match=r"\(requested 3, total size 2\)"):
        b.take(3)
    waiting = threading.Thread(target=lambda: found.append(b.take(2)[1]))
    waiting.start()
    b.insert(1, ["k2", "k1"], [[1, 1], [2, 2]])
    waiting.join(LIMIT)
    assert found == [[b"k2", b"k1"]]
    b.insert(0, [], np.zeros(0, object))  # nothing may always be inserted
    with pytest.raises(CancelledError, match="is closed"):
        b.insert(0, ["k4"], [b"d"])
    with pytest.raises(EndOfDataError, match="is closed and has insufficient elements"):
        b.take(1)


def test_cancelling_forgets_what_is_incomplete():
    b = Handle()
    b.insert(0, ["k1", "k2"], [b"a", b"b"])
    b.insert(1, ["k1"], [[1, 1]])
    b.call("close", cancel_pending_enqueues=True)
    assert b.sizes == (1, 0)
    with pytest.raises(CancelledError, match="Pending enqueues cancelled: True"):
        b.insert(1, ["k2"], [[1, 1]])
    assert b.take(5, smaller=True)[1] == [b"k1"]


@pytest.mark.parametrize(
    ("component", "keys", "values", "text"),
    [
        (0, ["k"], [b"again"], "Key k already has a value for component 0 in barrier b"),
        (2, ["k"], [1], "component ID is out of range 2"),
        (1, ["k"], [[1, 2, 3]], r"Expected \[1,2\], got \[1,3\]"),
        (1, ["k"], np.zeros((1, 0)), "no elements are not supported"),
        (1, ["k"], [[1, 2], [3, 4]], "each of 1 keys, got 2"),
    ],
)
def test_what_does_not_fit_is_refused(component, keys, values, text):
    b = Handle()
    b.insert(0, ["k"], [b"a"])
    with pytest.raises(ArgumentError, match=text):
        b.insert(component, keys, values)
    assert b.sizes == (0, 1)
