"""Uses of sessions: several sessions and graphs, feeds of inner tensors, names, manual saving."""

from __future__ import annotations

from typing import Any

import numpy as np

from tf1.programs.data import draw


def several_graphs(tf: Any) -> list[float]:
    """Each graph has its own names, each session its own values."""
    values = []
    graphs = [tf.Graph(), tf.Graph()]
    for number, graph in enumerate(graphs):
        with graph.as_default():
            x = tf.placeholder(tf.float32, [2], name="x")
            w = tf.Variable(tf.fill([2], 1.0 + number), name="w")
            loss = tf.reduce_sum((w * x - 3.0) ** 2, name="loss")
            tf.train.GradientDescentOptimizer(0.1).minimize(loss, name="train")
            tf.global_variables_initializer()
    sessions = [tf.Session(graph=g) for g in (graphs[0], graphs[1], graphs[0])]
    for session in sessions:
        session.run("init")
    for i in range(3):
        for number, session in enumerate(sessions):
            feeds = {"x:0": [1.0 + number, 0.5 * i]}
            values.append(session.run(["train", "loss:0"], feed_dict=feeds)[1])
    for session in sessions:
        values.extend(session.run("w:0"))
        session.close()
    return values


def partial_runs(tf: Any) -> list[float]:
    """Any tensor may be fed; fetches nest; names find tensors and operations."""
    a = tf.placeholder_with_default(np.float32(2.0), [], name="a")
    with tf.name_scope("middle"):
        b = tf.multiply(a, 3.0, name="b")
    c = tf.add(b, tf.constant([1.0, 2.0]), name="c")
    d = tf.reduce_prod(c)
    (slope,) = tf.gradients(d, a)
    graph = tf.get_default_graph()
    with tf.Session() as sess:
        values = [d.eval(), sess.run(d, {b: 1.0}), sess.run(d, {c: [4.0, 5.0]})]
        values += [sess.run(d, {a: -1}), sess.run(slope), sess.run(slope, {"middle/b:0": 0.5})]
        found = sess.run({"one": [a, (b,)], "two": {"c": "c:0"}, "b": b})
        values += [found["one"][0], found["one"][1][0], *found["two"]["c"], found["b"]]
        values += [sess.run(graph.get_tensor_by_name("middle/b:0"), {"a:0": 7})]
        values += [sess.run([b, b, a], {b: 9.0})[1]]
        values += list(sess.run(graph.get_operation_by_name("c").outputs[0]))
        values += [len(graph.get_operations()) > 8, sess.run(d, {"c:0": np.ones(2)})]
    return [float(v) for v in values]


def saved_by_hand(tf: Any) -> list[float]:
    """Variables, the optimizer's too, written into a dict and assigned from it."""
    x = tf.constant(draw(1, 6, 3))
    w = tf.get_variable("w", initializer=draw(2, 3, 1))
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - 1.0))
    train = tf.train.AdamOptimizer(0.1).minimize(loss)
    variables = tf.global_variables()
    fresh = {v.name: tf.placeholder(v.dtype.base_dtype, v.shape) for v in variables}
    restore = [tf.assign(v, fresh[v.name]) for v in variables]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        values = [sess.run([loss, train])[0] for _ in range(3)]
        saved = sess.run({v.name: v for v in variables})
        values += [sess.run([loss, train])[0] for _ in range(3)]
    with tf.Session() as sess:
        sess.run(restore, {fresh[name]: value for name, value in saved.items()})
        values += [sess.run([loss, train])[0] for _ in range(3)]
    assert values[3:6] == values[6:]
    assert sorted(saved) == sorted(
        ["w:0", "beta1_power:0", "beta2_power:0", "w/Adam:0", "w/Adam_1:0"]
    )
    return values


def counters(tf: Any) -> list[float]:
    """Order by control dependencies; moving averages; what a read sees within a step."""
    n = tf.Variable(0, trainable=False)
    x = tf.Variable([1.0, 2.0])
    old = x + 0.0
    grow = tf.assign_add(n, 1)
    with tf.control_dependencies([grow]):
        scaled = tf.assign(x, x * tf.cast(n.read_value(), tf.float32))
    averages = tf.train.ExponentialMovingAverage(0.5)
    with tf.control_dependencies([scaled]):
        keep = averages.apply([x])
    values = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(4):
            sess.run(keep)
            values += [*sess.run(old), sess.run(n), *sess.run(averages.average(x))]
        sess.run(tf.scatter_add(x, [0, 0], [10.0, 5.0]))
        values.extend(sess.run(x))
        sess.run(tf.assign_sub(x, [1.0, 1.0]))
        values.extend(x.eval())
    return [float(v) for v in values]
