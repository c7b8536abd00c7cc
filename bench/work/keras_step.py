"""A training step of a Keras model that classifies: one tf.function; the loss is fetched."""

from __future__ import annotations

import tensorflow as tf


def compiled_step(model, optimizer, x, labels):
    @tf.function
    def train():
        with tf.GradientTape() as tape:
            logits = model(x, training=True)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            loss = tf.reduce_mean(losses)
        weights = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return loss

    return lambda: float(train())
