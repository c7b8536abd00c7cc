"""`tf.device`, `tf.colocate_with`, `tf.DeviceSpec`: what TensorFlow's own tests of them ask."""

from __future__ import annotations

import threading

import pytest

import weft.tf1 as tf
from weft.ir.parser import parse_graph
from weft.ir.printer import format_graph


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def made(name=None):
    return tf.constant(1.0, name=name)


def nested(*scopes):
    """The device of an operation inside these scopes."""
    if not scopes:
        return made().device
    with tf.device(scopes[0]):
        return nested(*scopes[1:])


GPU, WORKER, CPU, PS = "/device:GPU:0", "/job:worker", "/device:CPU:0", "/job:ps"


@pytest.mark.parametrize(
    "scopes, expected",
    [
        ([], ""),
        (["/job:worker/replica:2"], "/job:worker/replica:2"),
        (["/job:worker/replica:2", "/job:worker/replica:3/task:0"], "/job:worker/replica:3/task:0"),
        ([GPU, WORKER], "/job:worker/device:GPU:0"),
        ([GPU, WORKER, CPU], "/job:worker/device:CPU:0"),
        ([GPU, WORKER, CPU, PS], "/job:ps/device:CPU:0"),
        ([GPU, WORKER, CPU, PS, ""], "/job:ps/device:CPU:0"),
        ([GPU, WORKER, CPU, PS, None], ""),
        ([GPU, None, PS], "/job:ps"),
        (["/device:GPU:7", "/device:GPU:*"], "/device:GPU:7"),
        (["/device:CPU:*", "/device:CPU:5"], "/device:CPU:5"),
        ([tf.DeviceSpec(job="w", task=1), tf.DeviceSpec(device_type="CPU", device_index=3)],
         "/job:w/task:1/device:CPU:3"),
        ([lambda op: "/job:over"], "/job:over"),
        ([lambda op: "/job:over", PS], "/job:over"),
        ([lambda op: "/job:over", None, PS], "/job:ps"),
        ([PS, lambda op: "/cpu:1"], "/job:ps/device:CPU:1"),
        ([PS, lambda op: tf.DeviceSpec(job="w")], "/job:w"),
        ([PS, lambda op: None], "/job:ps"),
        ([PS, lambda op: op.device, CPU], "/job:ps/device:CPU:0"),
        ([lambda op: "", CPU], ""),
        ([lambda op: "/cpu:0"], "/cpu:0"),
    ],
)  # fmt: skip
def test_scopes(scopes, expected):
    assert nested(*scopes) == expected


def test_a_function_sees_the_operation():
    seen = []

    def choose(op):
        seen.append((op.name, op.type, op.device, [t.name for t in op.inputs], op.node_def))
        return "/cpu:1" if op.type == "Const" else "/cpu:0"

    with tf.device(choose), tf.device("/task:3"):
        y = made("a") + tf.placeholder(tf.float32, [], name="b")
    assert [x[:4] for x in seen] == [
        ("a", "Const", "/task:3", []),
        ("b", "Placeholder", "/task:3", []),
        ("add", "AddV2", "/task:3", ["a:0", "b:0"]),
    ]
    node_def = seen[-1][-1]
    assert (node_def.op, node_def.name, list(node_def.input)) == ("AddV2", "add", ["a", "b"])
    assert str(y.op.node_def).splitlines()[-1] == 'device: "/cpu:0"'


@pytest.mark.parametrize("wrong", ["garbage", "/job:a/garbage:1", "/cpu:0/gpu:1", 3, ["/cpu:0"]])
def test_what_is_no_device(wrong):
    with pytest.raises(ValueError, match=r"device: expected .* \(created at test_device.py"):
        nested(wrong)
    with pytest.raises(ValueError, match="device: expected"):
        nested(PS, lambda op: wrong)
    assert nested() == ""


def test_scopes_that_end_in_the_wrong_order():
    scope = tf.device("/device:GPU:8")
    scope.__enter__()
    with tf.device("/device:GPU:9"), pytest.raises(RuntimeError, match="order"):
        scope.__exit__(None, None, None)


def test_threads_have_their_own_scopes(graph):
    found = {}

    def build():
        with graph.as_default():
            found["other"] = made().device

    with tf.device(PS):
        thread = threading.Thread(target=build)
        thread.start()
        thread.join()
    assert found == {"other": ""}


def groups(tensor):
    return [group.decode() for group in tensor.op.colocation_groups()]


def test_colocation():
    a = made("a")
    with tf.colocate_with(a.op):
        b = made("b")
        with tf.colocate_with(b.op):
            c = made("c")
        with tf.colocate_with(None, ignore_existing=True):
            d = made("d")
            with tf.colocate_with(d):
                e = made("e")
    with tf.colocate_with(d):
        with tf.colocate_with(a):
            f = made("f")
        with tf.colocate_with(a, ignore_existing=True):
            g = made("g")
    assert [groups(x) for x in (a, b, c, d, e)] == [["loc:@a"]] * 3 + [["loc:@d"]] * 2
    assert groups(f) == ["loc:@a", "loc:@d"] and groups(g) == ["loc:@a"]
    assert b.op.get_attr("_class") == [b"loc:@a"]
    with pytest.raises(ValueError, match="no attribute '_class'"):
        a.op.get_attr("_class")
    with pytest.raises(ValueError, match="ignore_existing=True"), tf.colocate_with(None):
        pass
    with pytest.raises(ValueError, match="got 'a'"), tf.colocate_with("a"):
        pass


def test_colocation_is_stronger_than_scopes():
    with tf.device("/cpu:0"):
        with tf.device(GPU):
            a = made("a")
            with tf.colocate_with(a.op):
                b = made()
            c = made()
        d = made()
        with tf.colocate_with(a.op):
            e = made()
            with tf.device("/job:q"):
                f = made()
        with tf.colocate_with(None, ignore_existing=True):
            g = made()
    assert [x.device for x in (b, c, d, e, f, g)] == [GPU, GPU, CPU, GPU, GPU, ""]
    assert groups(f) == ["loc:@a"]


def test_what_changes_a_variable_is_with_it():
    with tf.device("/job:ps/cpu:0"):
        v = tf.Variable([1.0, 2.0], name="v")
        late = tf.Variable(lambda: tf.zeros([3]), name="late")
    with tf.device("/job:worker"):
        y = v * 2.0
        added = tf.assign_add(v, [1.0, 1.0])
        scattered = tf.scatter_add(v, [0], [1.0])
        read = v.read_value()
        optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
        optimizer.minimize(tf.reduce_sum(y), tf.train.get_or_create_global_step())
    graph, there = tf.get_default_graph(), "/job:ps/device:CPU:0"
    slot = optimizer.get_slot(v, "momentum")
    update = graph.get_operation_by_name("Momentum/update_v/ApplyMomentum")
    for op in (v.initializer, v.value().op, added.op, scattered.op, slot.op, slot.initializer,
               update):  # fmt: skip
        assert (op.device, op.colocation_groups()) == (there, [b"loc:@v"]), op.name
    assert y.device == read.device == added.op.inputs[1].device == "/job:worker"
    zeros = graph.get_operation_by_name("late/Initializer/zeros")
    assert (zeros.device, zeros.colocation_groups()) == ("", [b"loc:@late"])
    assert late.op.get_attr("_class") == [b"loc:@late"] and late.device == there


def test_variables_in_scopes():
    with tf.colocate_with(made("a")):
        b = tf.Variable([3.0], name="b")
    assert b.op.colocation_groups() == [b"loc:@a"]
    with tf.device("/cpu:2"):
        v = tf.Variable(1.0, caching_device="/job:w", name="v")
    assert (v.device, v.value().device) == ("/device:CPU:2", "/job:w/device:CPU:2")
    with tf.variable_scope("s", caching_device="/cpu:3"):
        w = tf.get_variable("w", [2])
    assert (w.device, w.value().device) == ("", "/device:CPU:3")


def test_gradients_are_where_their_operations_are(graph):
    with tf.device("/cpu:1"):
        x = tf.placeholder(tf.float32, [2], name="x")
        y = tf.tanh(x, name="y")
    plain = tf.gradients(y, x)[0]
    assert plain.device == "/device:CPU:1" and plain.op.colocation_groups() != [b"loc:@y"]
    with_ops = tf.gradients(y, x, colocate_gradients_with_ops=True)[0]
    assert with_ops.device == "/device:CPU:1" and with_ops.op.colocation_groups() == [b"loc:@y"]
    with tf.colocate_with(x):
        z = tf.sin(y, name="z")
    again = tf.gradients(z, y)[0]
    assert again.op.colocation_groups() == [b"loc:@x"]


def test_the_text_of_a_graph_keeps_devices_and_colocations(graph):
    with tf.device("/job:ps/cpu:0"):
        v = tf.Variable(lambda: tf.zeros([3]), name="v")
    a = made("a")
    with tf.colocate_with(v), tf.colocate_with(a):
        tf.tanh(v, name="y")
    read = parse_graph(format_graph(graph.ir))

    def pairs(graph):
        return {(node.name, other.name) for node, other in graph.colocated()}

    assert {("y", "v"), ("y", "a/constant")} <= pairs(graph.ir) == pairs(read)
    assert any(name.startswith("v/Initializer/zeros/") for name, _ in pairs(read))
    devices = {node.name: node.device for node in graph.ir.nodes}
    assert devices["y"] == "/job:ps/device:CPU:0"
    assert {node.name: node.device for node in read.nodes} == devices


def test_a_spec():
    spec = tf.DeviceSpec(job="a", device_type="cpu", device_index=0)
    assert repr(spec) == (
        "<DeviceSpec(job=a, replica=None, task=None, device_type=CPU, device_index=0)>"
    )
    spec.task = "3"
    assert spec.to_string() == "/job:a/task:3/device:CPU:0"
    assert spec.parse_from_string("/job:q/gpu:1") is spec
    assert (spec.job, spec.task, spec.device_type, spec.device_index) == ("q", None, "GPU", 1)
    spec.merge_from(tf.DeviceSpec(job="z", task=2, replica=1))
    assert spec.to_string() == "/job:z/replica:1/task:2/device:GPU:1"
    assert spec.replace(job="n", device_type=None).to_string() == "/job:n/replica:1/task:2"
    merged = spec.make_merged_spec(tf.DeviceSpec(device_type="CPU"))
    assert merged.to_string() == "/job:z/replica:1/task:2/device:CPU:1"
    assert spec == tf.DeviceSpec.from_string(spec.to_string()) != merged
    assert len({spec, tf.DeviceSpec.from_string(spec.to_string())}) == 1
    assert tf.DeviceSpec.from_string(None) == tf.DeviceSpec()
    spec.job, spec.replica, spec.device_index, spec.device_type = "b", 0, 2, "cpu"
    assert spec.to_string() == "/job:b/replica:0/task:2/device:CPU:2"
    with pytest.raises(ValueError, match="expected task to be a number or None, got 'x'"):
        tf.DeviceSpec(task="x")


def test_a_scope_keeps_the_spec_of_its_beginning():
    spec = tf.DeviceSpec(job="a")
    with tf.device(spec):
        spec.job = "b"
        assert made().device == "/job:a"


def test_options():
    config = tf.ConfigProto(device_count={"CPU": 2}, log_device_placement=True)
    config.gpu_options.allow_growth = True
    config.graph_options.optimizer_options.global_jit_level = tf.OptimizerOptions.ON_1
    config.device_filters.append("/job:ps")
    text = (
        'device_count { key: "CPU" value: 2 } device_filters: "/job:ps" gpu_options '
        "{ allow_growth: true } log_device_placement: true graph_options { optimizer_options "
        "{ global_jit_level: 1 } } "
    )
    assert " ".join([*str(config).split(), ""]) == text
    other = tf.ConfigProto()
    assert str(other) == "" and other != config
    other.CopyFrom(config)
    assert other == config and other.device_count is not config.device_count
    for kind in (tf.ConfigProto, tf.GPUOptions, tf.GraphOptions, tf.OptimizerOptions):
        with pytest.raises(ValueError, match=f"{kind.__name__}: expected some of .*, got 'foo'"):
            kind(foo=1)
        with pytest.raises(AttributeError):
            kind().foo = 1
