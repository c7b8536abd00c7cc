"""Sessions and devices: those that exist, those that do not, what is told about them."""

from __future__ import annotations

import pytest

import weft.tf1 as tf
from weft import errors

FIRST, SECOND = (f"/job:localhost/replica:0/task:0/device:CPU:{i}" for i in range(2))


def session(count=1, **options):
    return tf.Session(config=tf.ConfigProto(device_count={"CPU": count}, **options))


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def on(device):
    with tf.device(device):
        return tf.placeholder_with_default(1.0, [], name="p") + 1.0


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("device", ["/cpu:7", "/gpu:0", "/device:FOO:0"])
def test_a_device_that_does_not_exist(device, count):
    y = on(device)
    names = ", ".join([FIRST, SECOND][:count])
    text = r"device: p/.* \(created at test_session_devices.py:\d+\) asks for .*, which does not "
    text += f"exist; expected one of {names}; allow_soft_placement=True takes another"
    with session(count) as sess, pytest.raises(tf.errors.InvalidArgumentError, match=text):
        sess.run(y)
    with session(count, allow_soft_placement=True) as sess:
        assert sess.run(y) == 2.0


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("device", ["/job:ps", "/task:3", "/job:ps/task:1/cpu:0"])
def test_another_process_is_not_soft(device, count):
    y = on(device)
    for soft in (False, True):
        with (
            session(count, allow_soft_placement=soft) as sess,
            pytest.raises(tf.errors.InvalidArgumentError, match=r"expected one of .*CPU:\d$"),
        ):
            sess.run(y)


def test_a_graph_that_grows(graph):
    with session() as sess:
        assert sess.run(on("/cpu:0")) == 2.0
        bad = on("/cpu:3")
        with pytest.raises(tf.errors.InvalidArgumentError, match="CPU:3, which does not exist"):
            sess.run(bad)


def test_colocation_that_contradicts_a_device():
    a = tf.constant(1.0, name="a")
    with tf.colocate_with(a), tf.device("/cpu:0"):
        b = tf.constant(2.0, name="b")
    with tf.colocate_with(a), tf.device("/cpu:1"):
        c = tf.constant(3.0, name="c")
    with session(2) as sess, pytest.raises(tf.errors.InvalidArgumentError) as found:
        sess.run(b + c)
    for text in ("/device:CPU:0", "/device:CPU:1", "b/constant (created at", "is colocated with a"):
        assert text in str(found.value)


def test_the_log(capfd):
    y = on("/cpu:1")
    with session(2, log_device_placement=True) as sess:
        sess.run(y)
        sess.run(y)
        sess.run(y + tf.constant(1.0, name="more"))
    lines = capfd.readouterr().err.splitlines()
    assert f"p: (PlaceholderWithDefault): {SECOND}" in lines
    assert f"add: (AddV2): {SECOND}" in lines
    assert any(line.startswith("more: (Const): /job:localhost") for line in lines)
    assert len(lines) == len(set(lines)) == len({line.split(":")[0] for line in lines})
    with session(2) as sess:
        sess.run(y)
    assert capfd.readouterr().err == ""


def test_devices_are_listed():
    with session() as sess:
        (first,) = sess.list_devices()
    with session(2) as sess:
        devices = sess.list_devices()
    assert [d.name for d in devices] == [FIRST, SECOND] and devices[0] == first
    assert {d.device_type for d in devices} == {"CPU"}
    assert all(d.memory_limit_bytes > 1 << 30 and d.incarnation > 0 for d in devices)
    assert devices[0].incarnation != devices[1].incarnation
    assert str(first) == f"_DeviceAttributes({FIRST}, CPU, {first[2]}, {first[3]})"


@pytest.mark.parametrize(
    "options, text",
    [
        ({"device_count": {"CPU": 0}}, "expected a CPU or more, got 0"),
        ({"device_count": {"CPU": "2"}}, "expected a number of CPUs, got '2'"),
        ({"device_count": {"GPU": -1}}, "got -1 of GPU"),
        ({"cluster_def": object()}, r"tf\.train\.Server"),
        ({"graph_options": tf.GraphOptions(enable_bfloat16_sendrecv=True)}, "sent as they are"),
    ],
)
def test_options_that_are_refused(options, text):
    with pytest.raises(errors.WeftError, match=text):
        tf.Session(config=tf.ConfigProto(**options))
