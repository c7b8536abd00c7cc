"""Several losses and optimizers over one graph: variational, adversarial, deep Q."""

from __future__ import annotations

from typing import Any

import numpy as np

from tf1.programs.data import classes, draw


def _layer(tf: Any, x: Any, name: str, seed: int, units: int) -> Any:
    with tf.variable_scope(name):
        size = int(x.shape[1])
        w = tf.get_variable("w", initializer=draw(seed, size, units, scale=0.4))
        b = tf.get_variable("b", shape=[units], initializer=tf.zeros_initializer())
        return tf.matmul(x, w) + b


def variational_autoencoder(tf: Any) -> list[float]:
    """Reparametrized; the noise is fed in place of the random operation."""
    x_data = 1 / (1 + np.exp(-draw(1, 8, 10)))
    x = tf.placeholder(tf.float32, [None, 10])
    h = tf.nn.softplus(_layer(tf, x, "encoder", 2, 8))
    mean, log_variance = _layer(tf, h, "mean", 3, 2), _layer(tf, h, "variance", 4, 2)
    noise = tf.random_normal([8, 2], 0, 1, dtype=tf.float32)
    z = tf.add(mean, tf.multiply(tf.sqrt(tf.exp(log_variance)), noise))
    y = tf.nn.sigmoid(_layer(tf, tf.nn.softplus(_layer(tf, z, "d1", 5, 8)), "d2", 6, 10))
    logs = x * tf.log(1e-10 + y) + (1 - x) * tf.log(1e-10 + 1 - y)
    reconstruction = -tf.reduce_sum(logs, 1)
    divergence = 1 + log_variance - tf.square(mean) - tf.exp(log_variance)
    cost = tf.reduce_mean(reconstruction - 0.5 * tf.reduce_sum(divergence, 1))
    train = tf.train.AdamOptimizer(learning_rate=0.02).minimize(cost)
    values = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for i in range(6):
            feeds = {x: x_data, noise: draw(10 + i, 8, 2)}
            _, value, latent = sess.run((train, cost, mean), feed_dict=feeds)
            values += [value, latent[0, 0]]
        values.append(sess.run(y, {z: np.ones((8, 2))})[0, 0])
    return values


def adversarial(tf: Any) -> list[float]:
    """Two players, each with its own variables by scope and its own optimizer."""
    z = tf.placeholder(tf.float32, [6, 3], name="z")
    real = tf.placeholder(tf.float32, [6, 4], name="real")

    def generator(z: Any) -> Any:
        with tf.variable_scope("generator"):
            return tf.tanh(_layer(tf, tf.nn.relu(_layer(tf, z, "g1", 1, 8)), "g2", 2, 4))

    def discriminator(x: Any, reuse: bool = False) -> Any:
        with tf.variable_scope("discriminator", reuse=reuse):
            return _layer(tf, tf.nn.leaky_relu(_layer(tf, x, "d1", 3, 8)), "d2", 4, 1)

    fake = generator(z)
    yes, no = discriminator(real), discriminator(fake, reuse=True)
    entropy = tf.nn.sigmoid_cross_entropy_with_logits
    d_loss = tf.reduce_mean(entropy(logits=yes, labels=tf.ones_like(yes) * 0.9))
    d_loss += tf.reduce_mean(entropy(logits=no, labels=tf.zeros_like(no)))
    g_loss = tf.reduce_mean(entropy(logits=no, labels=tf.ones_like(no)))
    d_vars = [v for v in tf.trainable_variables() if v.name.startswith("discriminator/")]
    g_vars = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope="generator")
    assert len(d_vars) == len(g_vars) == 4
    d_train = tf.train.AdamOptimizer(0.02, beta1=0.5).minimize(d_loss, var_list=d_vars)
    g_train = tf.train.AdamOptimizer(0.02, beta1=0.5).minimize(g_loss, var_list=g_vars)
    with tf.control_dependencies([d_train]):
        clip = tf.group(*[v.assign(tf.clip_by_value(v, -0.5, 0.5)) for v in d_vars])
    values = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for i in range(5):
            feeds = {z: draw(20 + i, 6, 3), real: draw(30 + i, 6, 4)}
            values.append(sess.run([d_train, d_loss], feeds)[1])
            sess.run(clip, feeds)
            values.append(sess.run([g_train, g_loss], feeds)[1])
        values.append(sum(np.abs(v).sum() for v in sess.run(d_vars)))
    return values


def gradient_penalty(tf: Any) -> list[float]:
    """The norm of a gradient is part of the loss, which is then differentiated again."""
    real = tf.placeholder(tf.float32, [5, 4])
    fake = tf.placeholder(tf.float32, [5, 4])
    mix = tf.placeholder(tf.float32, [5, 1])

    def critic(x: Any) -> Any:
        with tf.variable_scope("critic", reuse=tf.AUTO_REUSE):
            y = tf.nn.softplus(_layer(tf, x, "c1", 1, 8))
            return _layer(tf, tf.tanh(_layer(tf, y, "c2", 2, 6)), "c3", 3, 1)

    between = real + mix * (fake - real)
    slopes = tf.gradients(critic(between), [between])[0]
    norm = tf.sqrt(tf.reduce_sum(tf.square(slopes), reduction_indices=[1]))
    loss = tf.reduce_mean(critic(fake)) - tf.reduce_mean(critic(real))
    loss += 10.0 * tf.reduce_mean((norm - 1.0) ** 2)
    train = tf.train.AdamOptimizer(1e-2, 0.5, 0.9).minimize(loss)
    values = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for i in range(5):
            feeds = {real: draw(40 + i, 5, 4), fake: draw(50 + i, 5, 4) + 1}
            feeds[mix] = np.abs(np.sin(draw(60 + i, 5, 1)))
            values.append(sess.run([loss, train], feeds)[0])
    return values


def deep_q(tf: Any) -> list[float]:
    """A network, its slow copy by assignments, chosen actions by one_hot and by gather_nd."""

    def network(x: Any, name: str, first: int) -> Any:
        with tf.variable_scope(name):
            return _layer(tf, tf.nn.relu(_layer(tf, x, "l1", first, 8)), "l2", first + 1, 3)

    state, after = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.float32, [None, 4])
    action, done = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.bool, [None])
    reward = tf.placeholder(tf.float32, [None])
    q, q_after = network(state, "online", 1), network(after, "target", 5)
    online = tf.get_collection(tf.GraphKeys.GLOBAL_VARIABLES, scope="online")
    target = tf.get_collection(tf.GraphKeys.GLOBAL_VARIABLES, scope="target")
    copy = [tf.assign(t, o) for t, o in zip(target, online, strict=True)]
    slow = tf.group(*[t.assign(0.9 * t + 0.1 * o) for t, o in zip(target, online, strict=True)])
    best = tf.reduce_max(q_after, axis=1)
    goal = reward + 0.9 * tf.where(done, tf.zeros_like(best), best)
    chosen = tf.reduce_sum(q * tf.one_hot(action, 3), axis=1)
    rows = tf.stack([tf.range(tf.shape(action)[0]), action], axis=1)
    error = tf.stop_gradient(goal) - chosen
    huber = tf.where(tf.abs(error) < 1.0, 0.5 * tf.square(error), tf.abs(error) - 0.5)
    loss = tf.reduce_mean(huber) + 0.1 * tf.reduce_mean(tf.gather_nd(q, rows))
    train = tf.train.RMSPropOptimizer(0.01, centered=True).minimize(loss, var_list=online)
    values = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        sess.run(copy)
        for i in range(6):
            feeds = {state: draw(i, 5, 4), after: draw(90 + i, 5, 4), reward: draw(80 + i, 5)}
            feeds.update({action: classes(i, 5, 3), done: classes(70 + i, 5, 2) == 1})
            values.append(sess.run([loss, train], feeds)[0])
            sess.run(slow if i % 2 else copy)
        values.extend(sess.run(target[1]))
        values.extend(sess.run(q[0], {state: draw(99, 1, 4)}))
    return values
