"""Whole programs, step by step, against TensorFlow's numbers.

The numbers were written down from TensorFlow 2.21 in its version 1 mode.
"""

# ruff: noqa: B905
import numpy as np
import pytest

import weft.tf1 as tf

V, H, T = 20, 12, 6


def pattern(*shape):
    n = np.arange(int(np.prod(shape)))
    return (np.sin(n * 1.3 + len(shape)) * 0.3).astype(np.float32).reshape(shape)


def batch(k, *shape):
    n = np.arange(int(np.prod(shape))) + 7 * k
    return (np.cos(n * 0.7) + np.sin(n * 2.1)).astype(np.float32).reshape(shape)


def numbers(k, below, *shape):
    n = np.arange(int(np.prod(shape))) + k
    return ((n * n + 3 * n) % below).reshape(shape)


def lstm_language_model(tf):
    ids, targets = tf.placeholder(tf.int32, [None, T]), tf.placeholder(tf.int32, [None, T])
    table = tf.get_variable("table", initializer=tf.constant(pattern(V, H)))
    x = tf.nn.embedding_lookup(table, ids)
    weights = tf.constant(pattern(2 * H, 4 * H))

    def cell(x, h, c):
        with tf.variable_scope("lstm", reuse=tf.AUTO_REUSE):
            w = tf.get_variable("w", initializer=weights)
            b = tf.get_variable("b", [4 * H], initializer=tf.zeros_initializer())
        i, j, f, o = tf.split(tf.matmul(tf.concat([x, h], 1), w) + b, 4, axis=1)
        c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
        return tf.tanh(c) * tf.sigmoid(o), c

    rows = tf.shape(ids)[0]
    h, c = tf.zeros([rows, H]), tf.zeros(tf.stack([rows, H]))
    outputs = []
    for t in range(T):
        h, c = cell(x[:, t, :], h, c)
        outputs.append(h)
    hidden = tf.reshape(tf.stack(outputs, axis=1), [-1, H])
    out = tf.get_variable("out", initializer=tf.constant(pattern(H, V)))
    bias = tf.get_variable("bias", [V], initializer=tf.constant_initializer(0.1))
    logits = tf.nn.xw_plus_b(hidden, out, bias)
    labels = tf.reshape(targets, [-1])
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    loss = tf.reduce_mean(losses)
    step = tf.Variable(0, trainable=False, name="global_step")
    rate = tf.train.exponential_decay(0.05, step, 3, 0.9, staircase=True)
    variables = tf.trainable_variables()
    gradients, norm = tf.clip_by_global_norm(tf.gradients(loss, variables), 0.5)
    pairs = zip(gradients, variables)
    train = tf.train.AdamOptimizer(rate).apply_gradients(pairs, global_step=step)
    hits = tf.reduce_mean(tf.to_float(tf.nn.in_top_k(logits, labels, 3)))
    feeds = []
    for k in range(6):
        a = numbers(k, V, 4 + k % 3, T)
        feeds.append({ids: a, targets: (a + 1) % V})
    return train, [loss, norm, hits, step], feeds


def autoencoder(tf):
    x = tf.placeholder(tf.float32, [None, 8, 8, 1])
    w1, w2 = tf.Variable(pattern(3, 3, 1, 4)), tf.Variable(pattern(3, 3, 1, 4) + 0.1)
    gain, shift = tf.Variable(tf.ones([4])), tf.Variable(tf.zeros([4]))
    moving = tf.Variable(tf.zeros([4]), trainable=False)
    h = tf.nn.conv2d(x, w1, [1, 2, 2, 1], "SAME")
    mean, variance = tf.nn.moments(h, [0, 1, 2])
    update = moving.assign(0.9 * moving + 0.1 * mean)
    h = tf.nn.relu(tf.nn.batch_normalization(h, mean, variance, shift, gain, 1e-3))
    shape = tf.stack([tf.shape(x)[0], 8, 8, 1])
    y = tf.nn.conv2d_transpose(h, w2, shape, [1, 2, 2, 1], "SAME")
    decay = 1e-3 * tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables()])
    loss = tf.reduce_mean(tf.square(y - x)) + decay
    with tf.control_dependencies([update]):
        optimizer = tf.train.MomentumOptimizer(0.05, 0.9, use_nesterov=True)
        train = optimizer.minimize(loss)
    return train, [loss, moving], [{x: batch(k, 3 + k % 2, 8, 8, 1)} for k in range(6)]


def word_vectors(tf):
    table, out = tf.Variable(pattern(30, 5)), tf.Variable(pattern(30, 5) + 0.1)
    word, others = tf.placeholder(tf.int64, [None]), tf.placeholder(tf.int64, [None, 4])
    u, w = tf.nn.embedding_lookup(table, word), tf.gather(out, others)
    scores = tf.reduce_sum(tf.expand_dims(u, 1) * w, 2)
    labels = tf.concat([tf.ones_like(scores[:, :1]), tf.zeros_like(scores[:, 1:])], 1)
    losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=scores)
    loss = tf.reduce_mean(tf.reduce_sum(losses, 1))
    train = tf.train.AdagradOptimizer(0.5).minimize(loss)
    normal = tf.nn.l2_normalize(table, 1)
    nearest = tf.nn.top_k(tf.matmul(normal, normal, transpose_b=True), 3)
    feeds = [{word: numbers(k, 30, 7), others: numbers(5 * k, 30, 7, 4)} for k in range(6)]
    return train, [loss, tf.reduce_sum(nearest.values)], feeds


def adversaries(tf):
    z, real = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32, [None, 4])

    def dense(x, n, name):
        with tf.variable_scope(name, reuse=tf.AUTO_REUSE):
            first = tf.constant(pattern(int(x.shape[1]), n))
            w = tf.get_variable("w", initializer=first)
            b = tf.get_variable("b", [n], initializer=tf.zeros_initializer())
        return tf.matmul(x, w) + b

    def judge(x):
        return dense(tf.tanh(dense(x, 8, "d1")), 1, "d2")

    fake = dense(tf.nn.elu(dense(z, 8, "g1")), 4, "g2")
    mixed = 0.3 * fake + 0.7 * real
    (slope,) = tf.gradients(judge(mixed), mixed)
    penalty = tf.reduce_mean((tf.sqrt(tf.reduce_sum(slope * slope, 1) + 1e-8) - 1.0) ** 2)
    d_loss = tf.reduce_mean(judge(fake)) - tf.reduce_mean(judge(real)) + 10 * penalty
    g_loss = -tf.reduce_mean(judge(fake))
    of = {c: [v for v in tf.trainable_variables() if v.name.startswith(c)] for c in "dg"}
    first = tf.train.RMSPropOptimizer(0.01).minimize(d_loss, var_list=of["d"])
    second = tf.train.AdamOptimizer(0.01, beta1=0.5).minimize(g_loss, var_list=of["g"])
    feeds = [{z: batch(k, 5, 3), real: batch(k + 9, 5, 4)} for k in range(6)]
    return [first, second], [d_loss, g_loss], feeds


PROGRAMS = [lstm_language_model, autoencoder, word_vectors, adversaries]


def run(tf, program):
    train, watched, feeds = program(tf)
    rows = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for feed in feeds:
            found = sess.run(watched, feed)  # alone: TensorFlow does not order it with updates
            for step in train if isinstance(train, list) else [train]:
                sess.run(step, feed)
            rows.append([float(v) for a in found for v in np.ravel(a)])
    return rows


# After each step: what each program watches
EXPECTED = {
    'lstm_language_model': [
        [2.98353, 0.434685, 0.291667, 0.0],
        [2.74563, 0.443856, 0.433333, 1.0],
        [2.44491, 0.423003, 0.555556, 2.0],
        [2.12903, 0.386418, 0.541667, 3.0],
        [1.968, 0.395371, 0.466667, 4.0],
        [1.83552, 0.226452, 0.611111, 5.0],
    ],
    'autoencoder': [
        [0.835958, 0.0, 0.0, 0.0, 0.0],
        [0.766647, 0.000777273, -0.00130494, -0.00147541, 0.000515598],
        [0.737579, 0.00269168, -0.00106324, -0.0030152, -0.00030282],
        [0.700867, 0.00302433, -0.000191055, -0.00319402, -0.00144408],
        [0.64201, -8.4212e-05, -0.000242117, -0.000952395, -0.000918837],
        [0.619254, -0.00173742, -7.35218e-05, 0.00088988, -0.000154737],
    ],
    'word_vectors': [
        [2.70473, 88.645],
        [2.81799, 88.4739],
        [2.71086, 87.7566],
        [2.68989, 87.3073],
        [2.58169, 86.5566],
        [2.52531, 86.5387],
    ],
    'adversaries': [
        [1.97889, -0.117206],
        [1.69695, -0.18975],
        [1.00762, 0.350539],
        [0.654185, -0.225765],
        [1.02192, -0.30232],
        [0.368486, 0.231077],
    ],
}  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_program(program):
    found = run(tf, program)
    np.testing.assert_allclose(found, EXPECTED[program.__name__], rtol=2e-4)
