"""Words and characters: embeddings with sparse gradients, manually unrolled recurrent cells."""

from __future__ import annotations

from typing import Any

import numpy as np

from tf1.programs.data import draw


def _skip_gram(tf: Any, optimizer: Any) -> list[float]:
    text = np.random.default_rng(1).integers(0, 12, size=60)
    centers, contexts = text[1:-1], text[2:]
    inputs = tf.placeholder(tf.int32, shape=[16])
    labels = tf.placeholder(tf.int32, shape=[16, 1])
    embeddings = tf.Variable(draw(2, 12, 5, scale=0.5))
    embed = tf.nn.embedding_lookup(embeddings, inputs)
    nce_weights = tf.Variable(draw(3, 12, 5, scale=0.5))
    nce_biases = tf.Variable(tf.zeros([12]))
    logits = tf.matmul(embed, tf.transpose(nce_weights)) + nce_biases
    targets = tf.one_hot(tf.squeeze(labels, axis=1), 12)
    losses = tf.nn.softmax_cross_entropy_with_logits(labels=targets, logits=logits)
    loss = tf.reduce_mean(losses)
    train = optimizer.minimize(loss)
    norm = tf.sqrt(tf.reduce_sum(tf.square(embeddings), 1, keepdims=True))
    similarity = tf.matmul(embeddings / norm, embeddings / norm, transpose_b=True)
    values = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for i in range(6):
            rows = slice(14 * (i % 3), 14 * (i % 3) + 16)
            feeds = {inputs: centers[rows], labels: contexts[rows, None]}
            values.append(sess.run([train, loss], feeds)[1])
        values.extend(sess.run(similarity)[3])
    return values


def skip_gram_adagrad(tf: Any) -> list[float]:
    """Rows repeat within a batch: sparse gradients add up."""
    return _skip_gram(tf, tf.train.AdagradOptimizer(0.5))


def skip_gram_adam(tf: Any) -> list[float]:
    """Adam's moments decay for the rows without a gradient, too."""
    return _skip_gram(tf, tf.train.AdamOptimizer(0.1))


def skip_gram_momentum(tf: Any) -> list[float]:
    """Momentum moves only the rows that have a gradient."""
    return _skip_gram(tf, tf.train.MomentumOptimizer(0.5, 0.9))


def skip_gram_rmsprop(tf: Any) -> list[float]:
    """RMSProp with sparse gradients."""
    return _skip_gram(tf, tf.train.RMSPropOptimizer(0.05, momentum=0.3))


def skip_gram_descent(tf: Any) -> list[float]:
    """Plain descent with sparse gradients."""
    return _skip_gram(tf, tf.train.GradientDescentOptimizer(1.0))


def char_rnn(tf: Any) -> list[float]:
    """An LSTM cell written out, unrolled over time; the state is fed back."""
    text, vocabulary, steps, batch, hidden = "hello weft, hello world. ", 16, 5, 2, 7
    letters = sorted(set(text))
    codes = np.array([letters.index(c) for c in text * 4], np.int32)
    x = tf.placeholder(tf.int32, [batch, steps])
    y = tf.placeholder(tf.int32, [batch, steps])
    c0 = tf.placeholder(tf.float32, [batch, hidden])
    h0 = tf.placeholder(tf.float32, [batch, hidden])
    with tf.variable_scope("rnn"):
        embedding = tf.get_variable("e", initializer=draw(4, vocabulary, 6, scale=0.5))
        kernel = tf.get_variable("k", initializer=draw(5, 6 + hidden, 4 * hidden, scale=0.4))
        bias = tf.get_variable("b", [4 * hidden], initializer=tf.zeros_initializer())
        out = tf.get_variable("o", initializer=draw(6, hidden, vocabulary, scale=0.4))
    c, h, outputs = c0, h0, []
    for letter in tf.unstack(tf.nn.embedding_lookup(embedding, x), axis=1):
        gates = tf.matmul(tf.concat([letter, h], 1), kernel) + bias
        i, j, f, o = tf.split(gates, 4, axis=1)
        c = tf.sigmoid(f + 1.0) * c + tf.sigmoid(i) * tf.tanh(j)
        h = tf.sigmoid(o) * tf.tanh(c)
        outputs.append(h)
    flat = tf.reshape(tf.stack(outputs, axis=1), [-1, hidden])
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=tf.reshape(y, [-1]), logits=tf.matmul(flat, out)
    )
    loss = tf.reduce_sum(losses) / batch
    variables = tf.trainable_variables()
    gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 1.0)
    train = tf.train.AdamOptimizer(0.03).apply_gradients(zip(gradients, variables, strict=True))
    state = [np.zeros((batch, hidden), np.float32)] * 2
    values = []
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for i in range(6):
            rows = codes[10 * i : 10 * i + 11]
            feeds = {x: rows[:-1].reshape(2, 5), y: rows[1:].reshape(2, 5)}
            feeds.update({c0: state[0], h0: state[1]})
            value, *state, _ = sess.run([loss, c, h, train], feeds)
            values.append(value)
        values.extend(state[1].ravel()[:3])
    return values
