"""Networks of layers: variable scopes, convolutions, batch normalization, gradients of inputs."""

from __future__ import annotations

from typing import Any

import numpy as np

from tf1.programs.data import classes, draw, one_hot


def _weights(tf: Any, name: str, seed: int, shape: list[int], scale: float = 0.3) -> Any:
    initial = tf.constant_initializer(draw(seed, *shape, scale=scale))
    return tf.get_variable(name, shape, initializer=initial)


def _dense(tf: Any, x: Any, name: str, seed: int, units: int) -> Any:
    with tf.variable_scope(name):
        size = x.get_shape().as_list()[-1]
        w = _weights(tf, "w", seed, [size, units])
        b = tf.get_variable("b", [units], initializer=tf.constant_initializer(0.0))
        return tf.nn.bias_add(tf.matmul(x, w), b)


def perceptron(tf: Any) -> list[float]:
    """Two hidden layers, Adam with a decaying rate, weights shared with an evaluation."""
    labels = classes(1, 32, 4)
    x_data = draw(2, 32, 6) + 0.5 * labels[:, None]

    def network(x: Any) -> Any:
        with tf.variable_scope("net", reuse=tf.AUTO_REUSE):
            y = tf.nn.relu(_dense(tf, x, "hidden1", 3, 16))
            y = tf.tanh(_dense(tf, y, "hidden2", 4, 8))
            return _dense(tf, y, "out", 5, 4)

    x = tf.placeholder(tf.float32, [None, 6])
    y = tf.placeholder(tf.int32, [None])
    test = tf.placeholder(tf.float32, [3, 6])
    with tf.name_scope("loss"):
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=network(x))
        loss = tf.reduce_mean(losses, name="mean")
    step = tf.train.get_or_create_global_step()
    rate = tf.train.exponential_decay(0.05, step, 3, 0.9)
    train = tf.train.AdamOptimizer(rate).minimize(loss, global_step=step)
    answers = tf.nn.softmax(network(test))
    assert len(tf.trainable_variables()) == 6
    assert loss.name == "loss/mean:0"
    values = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for i in range(8):
            rows = slice(8 * (i % 4), 8 * (i % 4) + 8)
            feeds = {x: x_data[rows], y: labels[rows]}
            values.append(sess.run((train, loss), feeds)[1])
        values.extend(sess.run(answers, {test: x_data[:3]})[:, 0])
    return values


def convolutional(tf: Any) -> list[float]:
    """Convolution, pooling, dropout and RMSProp."""
    x_data, labels = draw(6, 8, 100), one_hot(classes(7, 8, 3), 3)
    x = tf.placeholder(tf.float32, shape=[None, 100])
    y = tf.placeholder(tf.float32, shape=[None, 3])
    keep_prob = tf.placeholder(tf.float32)
    image = tf.reshape(x, [-1, 10, 10, 1])
    w1, w2 = _weights(tf, "w1", 8, [3, 3, 1, 4]), _weights(tf, "w2", 9, [5, 5, 4, 6], 0.1)
    h = tf.nn.relu(tf.nn.conv2d(image, w1, strides=[1, 1, 1, 1], padding="SAME"))
    h = tf.nn.max_pool(h, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
    h = tf.nn.relu(tf.nn.conv2d(h, w2, strides=[1, 2, 2, 1], padding="SAME") + 0.01)
    h = tf.nn.avg_pool(h, [1, 3, 3, 1], [1, 1, 1, 1], "SAME")
    flat = tf.reshape(h, [-1, int(np.prod(h.get_shape()[1:]))])
    logits = _dense(tf, tf.nn.dropout(flat, keep_prob), "fc", 10, 3)
    losses = tf.nn.softmax_cross_entropy_with_logits(labels=y, logits=logits)
    loss = tf.reduce_mean(losses)
    train = tf.train.RMSPropOptimizer(0.01, decay=0.9, momentum=0.5).minimize(loss)
    right = tf.equal(tf.argmax(logits, 1), tf.argmax(y, 1))
    accuracy = tf.reduce_mean(tf.cast(right, "float"))
    values = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        feeds = {x: x_data, y: labels, keep_prob: 1.0}
        for _ in range(6):
            values.append(sess.run([train, loss], feed_dict=feeds)[1])
        values.append(sess.run(accuracy, feed_dict=feeds))
    return values


def batch_normalized(tf: Any) -> list[float]:
    """Moments, moving averages updated before the step by control dependencies."""
    x_data, targets = draw(11, 12, 6, 6, 2) * 3 + 1, draw(12, 12, 1)
    x = tf.placeholder(tf.float32, [None, 6, 6, 2])
    t = tf.placeholder(tf.float32, [None, 1])
    h = tf.nn.conv2d(x, _weights(tf, "w", 13, [3, 3, 2, 4]), [1, 1, 1, 1], "VALID")
    mean, variance = tf.nn.moments(h, [0, 1, 2])
    gamma = tf.get_variable("gamma", [4], initializer=tf.ones_initializer())
    beta = tf.get_variable("beta", [4], initializer=tf.zeros_initializer())
    average = tf.get_variable("mean", [4], initializer=tf.zeros_initializer(), trainable=False)
    spread = tf.get_variable("variance", [4], initializer=tf.ones_initializer(), trainable=False)
    for moving, new in ((average, mean), (spread, variance)):
        update = tf.assign(moving, moving * 0.9 + new * 0.1)
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, update)
    h = tf.nn.relu(tf.nn.batch_normalization(h, mean, variance, beta, gamma, 1e-3))
    prediction = _dense(tf, tf.reduce_mean(h, axis=[1, 2]), "out", 14, 1)
    loss = tf.reduce_mean(tf.squared_difference(prediction, t))
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    values = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(4):
            _, value = sess.run([train, loss], {x: x_data, t: targets})
            values.append(value)
        values.extend(np.concatenate(sess.run([average, spread, gamma, beta])))
    return values


def fused_batch_normalized(tf: Any) -> list[float]:
    """`fused_batch_norm` with its gradient, in training and in use."""
    x_data = draw(15, 5, 4, 4, 3) * 2 - 1
    x = tf.placeholder(tf.float32, [None, 4, 4, 3])
    scale, offset = tf.Variable(tf.ones([3])), tf.Variable(tf.zeros([3]))
    y, mean, variance = tf.nn.fused_batch_norm(x, scale, offset, epsilon=0.01)
    used, _, _ = tf.nn.fused_batch_norm(
        x, scale, offset, mean=[0.1, 0.2, 0.3], variance=[1.0, 2.0, 3.0], is_training=False
    )
    loss = tf.reduce_mean(tf.square(y) * tf.sin(tf.cast(tf.range(3), tf.float32))) + tf.reduce_sum(
        tf.nn.elu(y) * 0.01
    )
    train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    values = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(3):
            values.append(sess.run([loss, train], {x: x_data})[0])
        feeds = {x: x_data}
        values.extend(np.concatenate(sess.run([mean, variance, scale, offset], feeds)))
        values.extend(sess.run(tf.gradients(y * x, x), feeds)[0].ravel()[:5])
        values.append(sess.run(tf.reduce_sum(used), feeds))
    return values


def image_optimized(tf: Any) -> list[float]:
    """A small style transfer: the image is what is learned, by Gram matrices."""
    kernel = tf.constant(draw(16, 3, 3, 3, 5, scale=0.3))

    def features(picture: Any) -> Any:
        return tf.nn.relu(tf.nn.conv2d(picture, kernel, [1, 1, 1, 1], "SAME"))

    def gram(maps: Any) -> Any:
        flat = tf.reshape(maps, [-1, 5])
        return tf.matmul(flat, flat, transpose_a=True) / tf.cast(tf.size(flat), tf.float32)

    content, style = tf.constant(draw(17, 1, 8, 8, 3)), tf.constant(draw(18, 1, 8, 8, 3))
    picture = tf.Variable(draw(19, 1, 8, 8, 3))
    loss = tf.nn.l2_loss(features(picture) - features(content)) / 10
    loss += tf.reduce_sum((gram(features(picture)) - gram(features(style))) ** 2) * 30
    loss += 0.1 * tf.reduce_mean(tf.abs(picture[:, 1:, :, :] - picture[:, :-1, :, :]))
    loss += 0.1 * tf.reduce_mean(tf.abs(picture[:, :, 1:] - picture[:, :, :-1]))
    train = tf.train.AdamOptimizer(0.05).minimize(loss, var_list=[picture])
    (slope,) = tf.gradients(loss, picture)
    values = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(5):
            values.append(sess.run([loss, train])[0])
        values.append(np.abs(sess.run(slope)).sum())
    return values


def autoencoder(tf: Any) -> list[float]:
    """Dictionaries of weights, an encoder and a decoder that reads its transpose."""
    x_data = 1 / (1 + np.exp(-draw(20, 10, 12)))
    X = tf.placeholder("float", [None, 12])
    weights = {"h1": tf.Variable(draw(21, 12, 6)), "h2": tf.Variable(draw(22, 6, 3))}
    biases = {name: tf.Variable(tf.zeros([n])) for name, n in (("e1", 6), ("e2", 3), ("d1", 6))}
    code = tf.nn.sigmoid(tf.add(tf.matmul(X, weights["h1"]), biases["e1"]))
    code = tf.nn.sigmoid(tf.add(tf.matmul(code, weights["h2"]), biases["e2"]))
    y = tf.nn.sigmoid(tf.matmul(code, tf.transpose(weights["h2"])) + biases["d1"])
    y = tf.nn.sigmoid(tf.matmul(y, weights["h1"], transpose_b=True))
    cost = tf.reduce_mean(tf.pow(X - y, 2))
    train = tf.train.RMSPropOptimizer(0.01).minimize(cost)
    values = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(6):
            _, c = sess.run([train, cost], feed_dict={X: x_data})
            values.append(c)
        values.extend(sess.run(code, {X: x_data[:1]})[0])
    return values
