"""ResNet-50 version 1.5 in TensorFlow 2: Keras layers, one tf.function, SGD with momentum."""

from __future__ import annotations

import tensorflow as tf

from bench.work.keras_step import compiled_step

BLOCKS = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))


def _model():
    layers = tf.keras.layers

    def unit(x, width, kernel, stride=1):
        pad = kernel // 2
        x = layers.ZeroPadding2D(pad)(x) if pad else x
        x = layers.Conv2D(width, kernel, stride, use_bias=False)(x)
        return layers.BatchNormalization(epsilon=1e-5)(x)

    inputs = tf.keras.Input((224, 224, 3))
    x = layers.ReLU()(unit(inputs, 64, 7, 2))
    x = layers.MaxPooling2D(3, 2, "same")(x)
    for width, count, first in BLOCKS:
        for i in range(count):
            stride = first if i == 0 else 1
            y = layers.ReLU()(unit(x, width, 1))
            y = layers.ReLU()(unit(y, width, 3, stride))
            shortcut = unit(x, 4 * width, 1, stride) if i == 0 else x
            x = layers.ReLU()(layers.Add()([unit(y, 4 * width, 1), shortcut]))
    return tf.keras.Model(inputs, layers.Dense(1000)(layers.GlobalAveragePooling2D()(x)))


def training_step(threads, inputs, labels):
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    model = _model()
    optimizer = tf.keras.optimizers.SGD(0.01, momentum=0.9)
    x, labels = tf.constant(inputs[0].transpose(0, 2, 3, 1)), tf.constant(labels)
    return compiled_step(model, optimizer, x, labels)
