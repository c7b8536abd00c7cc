"""Haiku: layers, and training of a network with batch norm and dropout."""

import json

import haiku as hk
import jax
import jax.numpy as jnp
import optax

x = jax.random.normal(jax.random.key(1), (8, 8, 8, 3))
y = jnp.arange(8) % 4
report = {}


def total(a):
    return [float(jnp.sum(v * v)) for v in jax.tree.leaves(a)]


def net(x, train):
    x = hk.Conv2D(4, 3, with_bias=False)(x)
    x = jax.nn.relu(hk.BatchNorm(True, True, 0.9)(x, train))
    x = hk.Flatten()(hk.MaxPool(2, 2, "SAME")(x))
    x = hk.dropout(hk.next_rng_key(), 0.3, x) if train else x
    return hk.nets.MLP([16, 4])(x)


model = hk.transform_with_state(net)
params, state = model.init(jax.random.key(0), x, True)
optimizer = optax.adam(1e-2)
moments = optimizer.init(params)


@jax.jit
def step(params, state, moments, key):
    def loss(params):
        logits, new = model.apply(params, state, key, x, True)
        return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), new

    (value, new), grads = jax.value_and_grad(loss, has_aux=True)(params)
    updates, moments = optimizer.update(grads, moments, params)
    return optax.apply_updates(params, updates), new, moments, value


report["training"] = []
for i in range(10):
    params, state, moments, value = step(params, state, moments, jax.random.key(i))
    report["training"].append(float(value))
report["trained"] = total([params, state])
sequence = x[:, 0]
made = {
    "linear": lambda: hk.Linear(5)(sequence),
    "norm": lambda: hk.LayerNorm(-1, True, True)(sequence),
    "attention": lambda: hk.MultiHeadAttention(2, 4, w_init=hk.initializers.VarianceScaling())(
        sequence, sequence, sequence), "embed": lambda: hk.Embed(5, 4)(y),
    "lstm": lambda: hk.dynamic_unroll(hk.LSTM(5), sequence, hk.LSTM(5).initial_state(8)),
    "gru": lambda: hk.static_unroll(hk.GRU(5), sequence, hk.GRU(5).initial_state(8)),
    "transposed": lambda: hk.Conv2DTranspose(2, 3, stride=2)(x),
    "sequential": lambda: hk.Sequential([hk.Linear(4), jnp.tanh, hk.Linear(2)])(sequence),
}  # fmt: skip
for name, run in made.items():
    transformed = hk.transform(run)
    found = transformed.init(jax.random.key(2))
    report[name] = total([found, transformed.apply(found, None)])
print(json.dumps(report))
