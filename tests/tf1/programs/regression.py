"""Regression, factorization and clustering, as in TensorFlow 1 tutorials."""

from __future__ import annotations

from typing import Any

import numpy as np

from tf1.programs.data import classes, draw, one_hot


def linear_regression(tf: Any) -> list[float]:
    """A line through points, one point a step."""
    train_x = np.array([3.3, 4.4, 5.5, 6.71, 6.93, 4.168, 9.779, 6.182], np.float32)
    train_y = np.array([1.7, 2.76, 2.09, 3.19, 1.694, 1.573, 3.366, 2.596], np.float32)
    X = tf.placeholder("float")
    Y = tf.placeholder("float")
    W = tf.Variable(0.3, name="weight")
    b = tf.Variable(-0.1, name="bias")
    prediction = tf.add(tf.multiply(X, W), b)
    cost = tf.reduce_sum(tf.pow(prediction - Y, 2)) / (2 * len(train_x))
    optimizer = tf.train.GradientDescentOptimizer(0.01).minimize(cost)
    costs = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(5):
            for x, y in zip(train_x, train_y, strict=True):
                sess.run(optimizer, feed_dict={X: x, Y: y})
            costs.append(sess.run(cost, feed_dict={X: train_x, Y: train_y}))
        costs += [W.eval(), sess.run(b)]
    return costs


def logistic_regression(tf: Any) -> list[float]:
    """Two classes, sigmoid, L2 penalty; the accuracy by comparison of booleans."""
    x_data = draw(1, 40, 6)
    y_data = (x_data @ draw(2, 6, 1) > 0).astype(np.float32)
    x = tf.placeholder(tf.float32, [None, 6], name="x")
    y = tf.placeholder(tf.float32, [None, 1], name="y")
    w = tf.Variable(tf.constant(draw(3, 6, 1)), name="w")
    b = tf.Variable(tf.zeros([1]))
    logits = tf.matmul(x, w) + b
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits))
    loss = loss + 0.01 * tf.nn.l2_loss(w)
    step = tf.train.MomentumOptimizer(0.5, 0.9, use_nesterov=True).minimize(loss)
    right = tf.equal(tf.round(tf.sigmoid(logits)), y)
    accuracy = tf.reduce_mean(tf.cast(right, tf.float32))
    values = []
    with tf.Session() as sess:
        tf.global_variables_initializer().run()
        for i in range(8):
            rows = slice(10 * (i % 4), 10 * (i % 4) + 10)
            _, value = sess.run([step, loss], {x: x_data[rows], y: y_data[rows]})
            values.append(value)
        values.append(accuracy.eval({x: x_data, y: y_data}))
    return values


def matrix_factorization(tf: Any) -> list[float]:
    """Ratings from embeddings of users and items: sparse gradients, Adagrad."""
    rng = np.random.default_rng(4)
    users, items = rng.integers(0, 7, size=30), rng.integers(0, 9, size=30)
    ratings = rng.uniform(1, 5, size=30).astype(np.float32)
    user, item = tf.placeholder(tf.int64, [None]), tf.placeholder(tf.int64, [None])
    rating = tf.placeholder(tf.float32, [None])
    U = tf.Variable(draw(5, 7, 4, scale=0.3))
    V = tf.Variable(draw(6, 9, 4, scale=0.3))
    user_bias = tf.Variable(tf.zeros([7]))
    item_bias = tf.Variable(tf.zeros([9]))
    mean = tf.Variable(float(ratings.mean()), trainable=False)
    u, v = tf.nn.embedding_lookup(U, user), tf.nn.embedding_lookup(V, item)
    guess = tf.reduce_sum(u * v, axis=1) + mean
    guess += tf.gather(user_bias, user) + tf.gather(item_bias, item)
    penalty = 0.05 * (tf.nn.l2_loss(u) + tf.nn.l2_loss(v))
    loss = tf.losses.mean_squared_error(rating, guess) + penalty
    train = tf.train.AdagradOptimizer(0.3).minimize(loss)
    values = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for i in range(9):
            rows = slice(10 * (i % 3), 10 * (i % 3) + 10)
            feeds = {user: users[rows], item: items[rows], rating: ratings[rows]}
            values.append(sess.run([loss, train], feeds)[0])
        values.append(sess.run(tf.reduce_sum(tf.abs(U))))
    return values


def k_means(tf: Any) -> list[float]:
    """Lloyd's algorithm, all of it in the graph."""
    points = tf.constant(draw(7, 50, 2))
    centroids = tf.Variable(tf.slice(points, [0, 0], [4, -1]))
    offsets = tf.subtract(tf.expand_dims(points, 0), tf.expand_dims(centroids, 1))
    distances = tf.reduce_sum(tf.square(offsets), 2)
    nearest = tf.argmin(distances, 0)
    sums = tf.unsorted_segment_sum(points, nearest, 4)
    counts = tf.unsorted_segment_sum(tf.ones_like(points[:, :1]), nearest, 4)
    means = tf.div(sums, tf.maximum(counts, 1.0))
    inertia = tf.reduce_mean(tf.reduce_min(distances, 0))
    update = tf.assign(centroids, means)
    values = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(6):
            values.append(sess.run(inertia))
            sess.run(update)
        values.extend(sess.run(centroids).ravel())
    return values


def softmax_by_hand(tf: Any) -> list[float]:
    """Clipped logarithm, a rate that decays by the global step, clipped gradients."""
    labels = classes(8, 24, 3)
    x_data = draw(9, 24, 5) + labels[:, None]
    x = tf.placeholder(tf.float32, [None, 5])
    y_ = tf.placeholder(tf.float32, [None, 3])
    W = tf.Variable(draw(10, 5, 3))
    b = tf.Variable(tf.constant(0.1, shape=[3]))
    y = tf.nn.softmax(tf.matmul(x, W) + b)
    logs = tf.log(tf.clip_by_value(y, 1e-10, 1.0))
    loss = -tf.reduce_mean(tf.reduce_sum(y_ * logs, reduction_indices=[1]))
    step = tf.Variable(0, trainable=False, name="global_step")
    rate = tf.train.exponential_decay(0.5, step, 2, 0.5, staircase=True)
    optimizer = tf.train.GradientDescentOptimizer(rate)
    pairs = optimizer.compute_gradients(loss)
    gradients, variables = zip(*pairs, strict=True)
    gradients, size = tf.clip_by_global_norm(gradients, 0.5)
    train = optimizer.apply_gradients(zip(gradients, variables, strict=True), global_step=step)
    values = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        feeds = {x: x_data, y_: one_hot(labels, 3)}
        for _ in range(5):
            value, norm, _ = sess.run([loss, size, train], feeds)
            values += [value, norm, sess.run(rate), sess.run(step)]
    return values
