"""Equinox: layers, and training of a network with dropout, batch norm and state."""

import json

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

keys = list(jax.random.split(jax.random.key(0), 20))
x = jax.random.normal(jax.random.key(1), (8, 3, 8, 8))
y = jnp.arange(8) % 4
report = {}


def total(a):
    return [float(jnp.sum(v * v)) for v in jax.tree.leaves(eqx.filter(a, eqx.is_array))]


class Net(eqx.Module):
    convolution: eqx.nn.Conv2d
    norm: eqx.nn.BatchNorm
    pool: eqx.nn.MaxPool2d
    dropout: eqx.nn.Dropout
    head: eqx.nn.MLP
    name: str = eqx.field(static=True, default="net")

    def __init__(self, key):
        a, b = jax.random.split(key)
        self.convolution = eqx.nn.Conv2d(3, 4, 3, padding=1, use_bias=False, key=a)
        self.norm = eqx.nn.BatchNorm(4, axis_name="batch", mode="ema")
        self.pool = eqx.nn.MaxPool2d(2, 2)
        self.dropout = eqx.nn.Dropout(0.3)
        self.head = eqx.nn.MLP(64, 4, 16, 2, key=b)

    def __call__(self, x, state, key):
        h, state = self.norm(self.convolution(x), state)
        h = self.pool(jax.nn.relu(h)).reshape(-1)
        return self.head(self.dropout(h, key=key)), state


def loss(model, state, x, y, keys):
    run = jax.vmap(model, axis_name="batch", in_axes=(0, None, 0), out_axes=(0, None))
    logits, state = run(x, state, keys)
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), state


model, state = eqx.nn.make_with_state(Net)(keys[0])
optimizer = optax.adam(1e-2)
moments = optimizer.init(eqx.filter(model, eqx.is_inexact_array))


@eqx.filter_jit
def step(model, state, moments, key):
    each = jax.random.split(key, 8)
    (value, state), grads = eqx.filter_value_and_grad(loss, has_aux=True)(model, state, x, y, each)
    updates, moments = optimizer.update(grads, moments, model)
    return eqx.apply_updates(model, updates), state, moments, value


report["training"] = []
for i in range(10):
    model, state, moments, value = step(model, state, moments, jax.random.fold_in(keys[1], i))
    report["training"].append(float(value))
model = eqx.nn.inference_mode(model)
report["trained"] = total(jax.vmap(lambda v: model(v, state, None)[0])(x))
v, sequence = x[0, 0, 0], x[0, 0]
report["linear"] = total(eqx.nn.Linear(8, 5, key=keys[2])(v))
report["embedding"] = total(jax.vmap(eqx.nn.Embedding(4, 6, key=keys[3]))(y))
report["layer norm"] = total([eqx.nn.LayerNorm(8)(v), eqx.nn.RMSNorm(8)(v)])
report["group norm"] = total(eqx.nn.GroupNorm(2, 4)(x[0, :1].repeat(4, 0)))
attention = eqx.nn.MultiheadAttention(2, 8, key=keys[4])
mask = jnp.tril(jnp.ones((8, 8), bool))
report["attention"] = total(attention(sequence, sequence, sequence, mask=mask))
cell = eqx.nn.GRUCell(8, 6, key=keys[5])
report["gru"] = total(jax.lax.scan(lambda h, a: (cell(a, h), None), jnp.zeros(6), sequence)[0])
lstm = eqx.nn.LSTMCell(8, 6, key=keys[6])
start = (jnp.zeros(6), jnp.zeros(6))
report["lstm"] = total(jax.lax.scan(lambda h, a: (lstm(a, h), None), start, sequence)[0])
report["transposed"] = total(eqx.nn.ConvTranspose2d(3, 2, 3, stride=2, key=keys[7])(x[0]))
report["pools"] = total([eqx.nn.AvgPool2d(2, 2)(x[0]), eqx.nn.AdaptiveAvgPool2d(3)(x[0])])
layers = [eqx.nn.Linear(8, 8, key=keys[8]), eqx.nn.Lambda(jax.nn.gelu)]
report["sequential"] = total(eqx.nn.Sequential(layers)(v))
report["ensemble"] = total(eqx.filter_vmap(lambda k: eqx.nn.Linear(8, 2, key=k)(v))(
    jax.random.split(keys[9], 3)))  # fmt: skip
report["tree_at"] = total(eqx.tree_at(lambda m: m.weight, layers[0], replace_fn=lambda w: w * 2))
params, static = eqx.partition(layers[0], eqx.is_array)
report["partition"] = total(jax.grad(lambda p: eqx.combine(p, static)(v).sum())(params))
report["shape"] = list(eqx.filter_eval_shape(layers[0], v).shape)
report["hessian"] = total(eqx.filter_hessian(lambda a: jnp.sum(jnp.tanh(layers[0](a))))(v))
report["checkpoint"] = total(eqx.filter_grad(
    lambda a: eqx.filter_checkpoint(lambda b: jnp.sum(jnp.sin(b)))(a))(v))  # fmt: skip
report["repr"] = [str(layers[0])]
print(json.dumps(report))
