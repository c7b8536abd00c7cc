"""Graphs, operations and tensors: names, look-ups, collections, conversions, static shapes."""

# ruff: noqa: E501
import numpy as np
import pytest

import weft.tf1 as tf
from weft import errors


def test_look_ups():
    a = tf.constant([1.0, 2.0], name="a")
    first, second = tf.split(a, 2, name="parts")
    graph = tf.get_default_graph()
    assert graph.get_tensor_by_name("a:0") is a
    assert graph.get_tensor_by_name("parts:1") is second
    assert graph.get_operation_by_name("parts") is first.op
    assert graph.as_graph_element("a") is a.op and graph.as_graph_element(a) is a
    with pytest.raises(KeyError, match="no operation 'zz'"):
        graph.get_tensor_by_name("zz:0")
    with pytest.raises(KeyError, match="has 1 outputs"):
        graph.get_tensor_by_name("a:1")
    with pytest.raises(ValueError, match="operation's name"):
        graph.get_tensor_by_name("a")
    with pytest.raises(KeyError):
        graph.get_operation_by_name("zz")
    with pytest.raises(TypeError):
        graph.get_operation_by_name(3)


def test_operations():
    a, b = tf.constant([[1.0]], name="a"), tf.constant([[2.0]], name="b")
    with tf.control_dependencies([b]), tf.device("/cpu:0"):
        c = tf.matmul(a, b, transpose_b=True, name="c")
    op = c.op
    assert (op.name, op.type, op.device) == ("c", "MatMul", "/device:CPU:0")
    assert op.inputs == [a, b] and op.outputs == [c] and op.control_inputs == [b.op]
    assert op.get_attr("transpose_b") is True and op.get_attr("T") == tf.float32
    assert op.graph is tf.get_default_graph() and a.consumers() == [op]
    with pytest.raises(ValueError, match="no attribute"):
        op.get_attr("nope")
    with tf.Session():
        assert op.run() is None


def test_the_default_graph():
    graph = tf.Graph()
    before = tf.get_default_graph()
    with graph.as_default():
        a = tf.constant(1)
        with pytest.raises(ValueError, match="as_default"):
            tf.reset_default_graph()
    assert tf.get_default_graph() is before and a.graph is graph
    b = tf.constant(1)
    with pytest.raises(ValueError, match="different graphs"):
        a + b
    tf.reset_default_graph()
    assert tf.get_default_graph() is not before
    assert (graph.version, len(graph.get_operations())) == (1, 1)


def test_finalize():
    tf.constant(1)
    tf.get_default_graph().finalize()
    with pytest.raises(RuntimeError, match="finalized"):
        tf.constant(1)


def test_collections():
    tf.add_to_collection("things", 1)
    tf.get_default_graph().add_to_collections(["things", "others"], 2)
    assert tf.get_collection("things") == [1, 2] and tf.get_collection("others") == [2]
    tf.get_collection_ref("things").append(3)
    assert tf.get_collection("things") == [1, 2, 3]
    a, b = tf.Variable(1.0, name="a/v"), tf.Variable(1.0, name="b/v")
    assert tf.global_variables("a") == [a] and tf.global_variables() == [a, b]


def test_control_dependencies_order_and_clear(session):
    v = tf.Variable(1.0)
    session.run(v.initializer)
    with tf.control_dependencies([v.assign(2.0)]):
        inside = tf.no_op()
        with tf.control_dependencies(None):
            outside = tf.no_op()
    session.run(outside)
    assert session.run(v) == 1.0
    session.run(inside)
    assert session.run(v) == 2.0
    grouped = tf.group(v.assign(3.0), [tf.constant(1)])
    session.run(grouped)
    assert session.run(v) == 3.0
    a, b = tf.tuple([v * 1.0, tf.constant(5.0)], control_inputs=[v.assign(4.0)])
    assert session.run([a, b])[1] == 5.0 and session.run(v) == 4.0


def test_conversion_of_mixed_lists(session):
    x = tf.placeholder(tf.float32, [])
    packed = tf.convert_to_tensor([[1, x], [x, 4]])
    assert packed.shape.as_list() == [2, 2] and packed.op.type == "Pack"
    assert session.run(packed, {x: 2}).tolist() == [[1.0, 2.0], [2.0, 4.0]]
    assert session.run(tf.reshape([1.0, 2.0, x, x], [2, -1]), {x: 3}).tolist() == [[1, 2], [3, 3]]
    assert (np.array([1.0, 2.0]) + x).dtype == tf.float32  # the array takes the tensor's type


@pytest.mark.parametrize(
    "value, dtype, expected",
    [
        (1, None, "int32"), (2**31, None, "int64"), (1.0, None, "float32"), (True, None, "bool"),
        (np.float64(1), None, "float64"), (np.zeros(2, np.int8), None, "int8"),
        ([np.float64(1)], None, "float64"), ([], None, "float32"), (np.arange(3), tf.float32, "float32"),
        (3, tf.float64, "float64"), (tf.Dimension(4), None, "int32"), (tf.TensorShape([2]), None, "int32"),
    ],
)  # fmt: skip
def test_types_of_constants(session, value, dtype, expected):
    tensor = tf.constant(value, dtype)
    assert tensor.dtype.name == expected and session.run(tensor).dtype == expected


def test_constants_that_do_not_fit():
    with pytest.raises(TypeError, match=r"expected int32, got 1\.5"):
        tf.constant(1.5, tf.int32)
    with pytest.raises(TypeError, match="expected uint8, got 300"):
        tf.constant(300, tf.uint8)
    with pytest.raises(ValueError, match="equal lengths"):
        tf.constant([[1, 2], [3]])
    with pytest.raises(TypeError, match="expected numbers"):
        tf.constant(object())
    with pytest.raises(ValueError, match="got None"):
        tf.constant(None)
    with pytest.raises(ValueError, match="at most 1 elements"):
        tf.constant([1, 2], shape=[1])


def test_tensors_are_symbols():
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    assert (str(x), repr(x)) == (
        'Tensor("x:0", shape=(?, 2), dtype=float32)',
        "<tf.Tensor 'x:0' shape=(?, 2) dtype=float32>",
    )
    for use in (bool, iter, len):
        with pytest.raises(TypeError):
            use(x)
    assert x == x and x != tf.identity(x) and {x: 1}[x] == 1
    with pytest.raises(TypeError):
        x + tf.constant(1)


def test_static_shapes():
    x = tf.placeholder(tf.float32, [None, 3])
    assert x.shape.as_list() == [None, 3] and x.get_shape()[1].value == 3
    assert (x.shape.ndims, x.shape[0].value, str(x.shape)) == (2, None, "(?, 3)")
    x.set_shape([5, None])
    assert x.shape == [5, 3] and tf.reshape(x, [-1]).shape == [15]
    with pytest.raises(ValueError):
        x.set_shape([4, 3])
    y = tf.placeholder(tf.float32)
    assert y.shape.ndims is None and str(y.shape) == "<unknown>"
    with pytest.raises(ValueError, match="unknown TensorShape"):
        y.shape.as_list()
    n = tf.shape(tf.placeholder(tf.float32, [None, 4]))[0]
    assert tf.zeros(tf.stack([n, 7])).shape.as_list() == [None, 7]


def test_tensor_shape_and_dimension():
    shape = tf.TensorShape([None, 3])
    assert shape.merge_with([2, None]) == [2, 3] and shape.concatenate([1]).as_list() == [
        None,
        3,
        1,
    ]
    assert shape[1:].as_list() == [3] and not shape.is_fully_defined()
    assert shape.is_compatible_with([7, 3]) and not shape.is_compatible_with([7, 4])
    assert repr(shape) == "TensorShape([Dimension(None), Dimension(3)])"
    d = tf.Dimension(6)
    assert (d // 2).value == 3 and (2 * d).value == 12 and int(d) == 6 and (d == None) is None  # noqa: E711
    assert (d + tf.Dimension(None)).value is None and list(range(d))[-1] == 5


def test_element_types():
    assert tf.float32.as_numpy_dtype is np.float32 and tf.float32 == np.float32 == tf.as_dtype(
        "float"
    )
    assert tf.float32._is_ref_dtype is False and tf.as_dtype("float32_ref").base_dtype is tf.float32
    assert (str(tf.float32), repr(tf.int8), tf.as_dtype(float)) == (
        "<dtype: 'float32'>", "tf.int8", tf.float32,
    )  # fmt: skip
    assert (tf.int8.min, tf.uint8.max, tf.float16.size, tf.bool.is_bool) == (-128, 255, 2, True)
    assert tf.bfloat16.is_floating and tf.int64.is_integer and not tf.bool.is_integer
    assert {tf.float32: 1}[tf.as_dtype(np.float32)] == 1 and tf.float32 != "nonsense"
    with pytest.raises(errors.DTypeError):
        tf.as_dtype("nonsense")


def test_subscripts(session):
    array = np.arange(24.0).reshape(2, 3, 4)
    x = tf.placeholder(tf.float64, [None, 3, 4])
    i = tf.constant(1)
    keys = [
        np.s_[0], np.s_[-1], np.s_[1, 2], np.s_[..., 0], np.s_[:, 1:, ::2], np.s_[::-1],
        np.s_[0, ..., -2:], np.s_[:, None], np.s_[..., None], np.s_[0:1, :, 3:0:-2], np.s_[5:],
    ]  # fmt: skip
    for key in keys:
        np.testing.assert_array_equal(session.run(x[key], {x: array}), array[key], err_msg=str(key))
    np.testing.assert_array_equal(session.run(x[i], {x: array}), array[1])
    np.testing.assert_array_equal(session.run(x[:, i:], {x: array}), array[:, 1:])
    np.testing.assert_array_equal(session.run(x[0, i + 1], {x: array}), array[0, 2])
    with pytest.raises(ValueError, match="axis 1, got 3"):
        x[0, 3]
    with pytest.raises(ValueError, match="at most 3"):
        x[0, 0, 0, 0]
    with pytest.raises(TypeError):
        x[1.5]
    with pytest.raises(TypeError, match="boolean"):
        x[tf.constant([True, False])]


def test_errors_name_the_users_line():
    x = tf.placeholder(tf.float32, [None, 784])
    with pytest.raises(
        errors.ShapeError, match=r"got 784 and 748 \(created at test_graph.py:\d+\)"
    ):
        tf.matmul(x, tf.zeros([748, 10]))
    with pytest.raises(errors.DTypeError, match=r"expected y of type float32.*test_graph.py"):
        tf.add(x, tf.constant(1))
    with pytest.raises(errors.ShapeError, match="do not broadcast"):
        x + tf.zeros([3])
