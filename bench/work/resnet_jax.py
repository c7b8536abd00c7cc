"""ResNet-50 version 1.5 in JAX: NHWC, one jitted step, SGD with momentum."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

BLOCKS = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))
LAYOUT = ("NHWC", "HWIO", "NHWC")


def _parameters():
    rng = np.random.default_rng(0)
    found = {}

    def unit(name, kernel, inputs, outputs):
        scale = np.sqrt(2 / (kernel * kernel * inputs))
        weights = rng.standard_normal((kernel, kernel, inputs, outputs), np.float32) * scale
        found[name] = (
            jnp.asarray(weights, jnp.float32), jnp.ones(outputs), jnp.zeros(outputs)
        )  # fmt: skip

    unit("stem", 7, 3, 64)
    inputs = 64
    for stage, (width, count, _) in enumerate(BLOCKS):
        for i in range(count):
            name = f"{stage}.{i}"
            unit(f"{name}.1", 1, inputs, width)
            unit(f"{name}.2", 3, width, width)
            unit(f"{name}.3", 1, width, 4 * width)
            if i == 0:
                unit(f"{name}.down", 1, inputs, 4 * width)
            inputs = 4 * width
    head = rng.standard_normal((2048, 1000), np.float32) * 0.02
    found["head"] = (jnp.asarray(head), jnp.zeros(1000))
    return found


def _statistics(parameters):
    """Running mean and variance of each normalization."""
    return {
        name: (jnp.zeros_like(p[1]), jnp.ones_like(p[1]))
        for name, p in parameters.items()
        if name != "head"
    }


def _network(parameters, running, x):
    updated = {}

    def unit(x, name, stride=1):
        w, scale, shift = parameters[name]
        pad = w.shape[0] // 2
        y = jax.lax.conv_general_dilated(
            x, w, (stride, stride), ((pad, pad), (pad, pad)), dimension_numbers=LAYOUT
        )
        mean = y.mean((0, 1, 2))
        variance = jnp.square(y).mean((0, 1, 2)) - jnp.square(mean)
        old_mean, old_variance = running[name]
        updated[name] = (0.9 * old_mean + 0.1 * mean, 0.9 * old_variance + 0.1 * variance)
        return (y - mean) * (jax.lax.rsqrt(variance + 1e-5) * scale) + shift

    y = jax.nn.relu(unit(x, "stem", 2))
    y = jax.lax.reduce_window(
        y, -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), ((0, 0), (1, 1), (1, 1), (0, 0))
    )
    for stage, (_, count, first) in enumerate(BLOCKS):
        for i in range(count):
            name, stride = f"{stage}.{i}", first if i == 0 else 1
            z = jax.nn.relu(unit(y, f"{name}.1"))
            z = jax.nn.relu(unit(z, f"{name}.2", stride))
            shortcut = unit(y, f"{name}.down", stride) if i == 0 else y
            y = jax.nn.relu(unit(z, f"{name}.3") + shortcut)
    w, b = parameters["head"]
    return y.mean((1, 2)) @ w + b, updated


def training_step(inputs, labels):
    x = jnp.asarray(inputs[0].transpose(0, 2, 3, 1))
    labels = jnp.asarray(labels)

    def loss_of(parameters, running):
        logits, updated = _network(parameters, running, x)
        chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1)
        return -chosen.mean(), updated

    def train(parameters, momenta, running):
        (loss, running), g = jax.value_and_grad(loss_of, has_aux=True)(parameters, running)
        momenta = jax.tree.map(lambda m, g: 0.9 * m + g, momenta, g)
        parameters = jax.tree.map(lambda p, m: p - 0.01 * m, parameters, momenta)
        return parameters, momenta, running, loss

    compiled = jax.jit(train, donate_argnums=(0, 1, 2))
    first = _parameters()
    state = [(first, jax.tree.map(jnp.zeros_like, first), _statistics(first))]

    def step():
        *state[0], loss = compiled(*state[0])
        jax.block_until_ready(state[0])
        return float(loss)

    return step
