"""Programs of TensorFlow 1 tutorials, compiled and run."""

import numpy as np

import weft.tf1 as tf


def data(rows=500, columns=20, classes=5):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, columns)).astype(np.float32)
    best = np.argmax(x @ rng.normal(size=(columns, classes)), axis=1)
    return x, np.eye(classes, dtype=np.float32)[best]


def test_softmax_regression_by_gradients_and_assign():
    images, labels = data()
    x = tf.placeholder(tf.float32, [None, 20])
    W = tf.Variable(tf.zeros([20, 5]))
    b = tf.Variable(tf.zeros([5]))
    y = tf.nn.softmax(tf.matmul(x, W) + b)
    y_ = tf.placeholder(tf.float32, [None, 5])
    cross_entropy = tf.reduce_mean(-tf.reduce_sum(y_ * tf.log(y), reduction_indices=[1]))
    W_grad, b_grad = tf.gradients(cross_entropy, [W, b])
    W_assign = tf.assign(W, W - 0.5 * W_grad)
    b_assign = tf.assign(b, b - 0.5 * b_grad)
    sess = tf.Session()
    sess.run(tf.initialize_all_variables())
    for i in range(100):
        batch = slice(100 * (i % 5), 100 * (i % 5) + 100)
        sess.run([W_assign, b_assign], feed_dict={x: images[batch], y_: labels[batch]})
    correct_prediction = tf.equal(tf.argmax(y, 1), tf.argmax(y_, 1))
    accuracy = tf.reduce_mean(tf.cast(correct_prediction, tf.float32))
    feeds = {x: images, y_: labels}
    found = sess.run([accuracy, cross_entropy], feeds)
    np.testing.assert_allclose(found, train_in_numpy(images, labels), rtol=1e-4)


def train_in_numpy(images, labels):
    W, b = np.zeros((20, 5)), np.zeros(5)

    def softmax(x):
        e = np.exp(x - x.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    for i in range(100):
        batch = slice(100 * (i % 5), 100 * (i % 5) + 100)
        x, t = images[batch].astype(np.float64), labels[batch]
        error = (softmax(x @ W + b) - t) / 100
        W, b = W - 0.5 * x.T @ error, b - 0.5 * error.sum(0)
    y = softmax(images @ W + b)
    accuracy = (y.argmax(1) == labels.argmax(1)).mean()
    return accuracy, -np.mean(np.sum(labels * np.log(y), 1))


def test_interactive_session_and_optimizer():
    images, labels = data()
    sess = tf.InteractiveSession()
    x = tf.placeholder(tf.float32, shape=[None, 20])
    y_ = tf.placeholder(tf.float32, shape=[None, 5])
    W = tf.Variable(tf.zeros([20, 5]))
    b = tf.Variable(tf.zeros([5]))
    tf.global_variables_initializer().run()
    logits = tf.matmul(x, W) + b
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=y_, logits=logits))
    train_step = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    first = loss.eval(feed_dict={x: images, y_: labels})
    for _ in range(30):
        train_step.run(feed_dict={x: images, y_: labels})
    assert first == np.float32(np.log(5))
    assert loss.eval({x: images, y_: labels}) < 0.5
    assert W.eval().shape == (20, 5)
    sess.close()
    assert tf.get_default_session() is None


def test_convolutional_network():
    rng = np.random.default_rng(1)
    images = rng.normal(size=(32, 64)).astype(np.float32)
    labels = np.eye(2, dtype=np.float32)[(images[:, 27] > 0).astype(int)]

    def weight_variable(shape):
        return tf.Variable(tf.truncated_normal(shape, stddev=0.1, seed=3))

    x = tf.placeholder(tf.float32, [None, 64])
    y_ = tf.placeholder(tf.float32, [None, 2])
    keep_prob = tf.placeholder(tf.float32)
    image = tf.reshape(x, [-1, 8, 8, 1])
    kernel, bias = weight_variable([3, 3, 1, 8]), tf.Variable(tf.constant(0.1, shape=[8]))
    hidden = tf.nn.conv2d(image, kernel, strides=[1, 1, 1, 1], padding="SAME") + bias
    pooled = tf.nn.max_pool(
        tf.nn.relu(hidden), ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME"
    )
    flat = tf.reshape(pooled, [-1, 4 * 4 * 8])
    W, b = weight_variable([4 * 4 * 8, 2]), tf.Variable(tf.constant(0.1, shape=[2]))
    y = tf.matmul(tf.nn.dropout(flat, keep_prob), W) + b
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=y_, logits=y))
    train_step = tf.train.AdamOptimizer(1e-2).minimize(loss)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        whole = {x: images, y_: labels, keep_prob: 1.0}
        before = sess.run(loss, whole)
        for _ in range(60):
            sess.run(train_step, {x: images, y_: labels, keep_prob: 0.8})
        assert sess.run(loss, whole) < 0.3 * before


def test_layers_and_batch_normalization():
    x = tf.placeholder(tf.float32, [None, 6])
    training = tf.placeholder(tf.bool, [])
    hidden = tf.layers.dense(x, 8, activation=tf.nn.relu, name="hidden")
    normal = tf.layers.batch_normalization(hidden, training=training)
    y = tf.layers.dense(tf.layers.dropout(normal, 0.3, training=training), 1)
    loss = tf.losses.mean_squared_error(tf.ones_like(y), y)
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    with tf.control_dependencies(updates):
        train = tf.train.MomentumOptimizer(0.05, 0.9).minimize(loss)
    names = [v.name for v in tf.trainable_variables()]
    assert names == [
        "hidden/kernel:0", "hidden/bias:0", "batch_normalization/gamma:0",
        "batch_normalization/beta:0", "dense/kernel:0", "dense/bias:0",
    ]  # fmt: skip
    images = np.random.default_rng(0).normal(size=(64, 6)).astype(np.float32)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        mean = tf.get_default_graph().get_tensor_by_name("batch_normalization/moving_mean:0")
        assert not sess.run(mean).any()
        for _ in range(200):
            sess.run(train, {x: images, training: True})
        assert sess.run(mean).any()
        assert sess.run(loss, {x: images, training: False}) < 0.05
