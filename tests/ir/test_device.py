"""Names of devices: parsed, merged and printed as TensorFlow does, which told these tables."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import ArgumentError
from weft.ir.device import EVERY, DeviceName

# What `tf.device(outer)` around `tf.device(inner)` gives in TensorFlow 2.21's compat.v1.
OUTER = (
    "", "/job:ps", "/job:ps/task:1", "/cpu:0", "/job:a/replica:0/task:3/device:GPU:1",
    "/device:CPU:*",
)  # fmt: skip
MERGED = {
    "": ("", "/job:ps", "/job:ps/task:1", "/device:CPU:0", "/job:a/replica:0/task:3/device:GPU:1",
         "/device:CPU:*"),
    "/job:w": ("/job:w", "/job:w", "/job:w/task:1", "/job:w/device:CPU:0",
               "/job:w/replica:0/task:3/device:GPU:1", "/job:w/device:CPU:*"),
    "/task:2": ("/task:2", "/job:ps/task:2", "/job:ps/task:2", "/task:2/device:CPU:0",
                "/job:a/replica:0/task:2/device:GPU:1", "/task:2/device:CPU:*"),
    "/gpu:1": ("/device:GPU:1", "/job:ps/device:GPU:1", "/job:ps/task:1/device:GPU:1",
               "/device:GPU:1", "/job:a/replica:0/task:3/device:GPU:1", "/device:GPU:1"),
    "/cpu:*": ("/device:CPU:*", "/job:ps/device:CPU:*", "/job:ps/task:1/device:CPU:*",
               "/device:CPU:0", "/job:a/replica:0/task:3/device:CPU:1", "/device:CPU:*"),
    "/job:w/replica:1/cpu:0": (
        "/job:w/replica:1/device:CPU:0", "/job:w/replica:1/device:CPU:0",
        "/job:w/replica:1/task:1/device:CPU:0", "/job:w/replica:1/device:CPU:0",
        "/job:w/replica:1/task:3/device:CPU:0", "/job:w/replica:1/device:CPU:0"),
}  # fmt: skip
PARSED = {
    "": "", "job:ps": "/job:ps", "/CPU": "/device:CPU:*", "cpu": "/device:CPU:*",
    "/device:cpu:0": "/device:CPU:0", "/device:Foo:2": "/device:Foo:2", "/Gpu:1": "/device:GPU:1",
    "/job:1a/task:0": "/job:1a/task:0", "gpu:1/": "/device:GPU:1", "//job:a": "/job:a",
    "/task:1/job:b": "/job:b/task:1", "/job:a/job:b": "/job:b",
    "/device:XLA_CPU:0": "/device:XLA_CPU:0",
    "/device:GPU:0/task:0/replica:0/job:foo": "/job:foo/replica:0/task:0/device:GPU:0",
}  # fmt: skip
REFUSED = (
    "/job:foo/bar", "ps", "/job:ps/task:x", "/job:j/replica:foo", "/device:CPU", "/barcpu:mu/baz:2",
    "/cpu:0/gpu:0", "cpu:0/cpu:1", "/cpu:0/device:GPU:2",
)  # fmt: skip


@pytest.mark.parametrize("inner", MERGED)
def test_inner_parts_win(inner):
    found = [str(DeviceName.parse(outer).merged(DeviceName.parse(inner))) for outer in OUTER]
    assert tuple(found) == MERGED[inner]


def test_texts():
    assert {text: str(DeviceName.parse(text)) for text in PARSED} == PARSED


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_device_is_refused(text):
    with pytest.raises(ArgumentError, match="device: expected .*, got '" + text):
        DeviceName.parse(text)


NUMBERS = st.none() | st.integers(0, 99)
KINDS = st.none() | st.sampled_from(["CPU", "GPU", "XLA_CPU"])


@st.composite
def names(draw):
    kind = draw(KINDS)
    job = draw(st.none() | st.sampled_from(["ps", "worker", "Chief_1"]))
    return DeviceName(job, draw(NUMBERS), draw(NUMBERS), kind, draw(NUMBERS) if kind else None)


@given(names())
def test_a_name_parses_back(name):
    assert DeviceName.parse(str(name)) == name


@given(names(), names(), names())
def test_merging(a, b, c):
    assert a.merged(b).merged(c) == a.merged(b.merged(c))
    assert a.merged(a) == a == a.merged(EVERY) == EVERY.merged(a)
    assert a.merged(b).agrees(b)
    assert a.agrees(b) == b.agrees(a) == (a.merged(b) == b.merged(a))
    assert not a.is_full or a.of_task.merged(DeviceName(kind=a.kind, index=a.index)) == a
