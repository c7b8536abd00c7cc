"""flax.nnx: layers, and training of a network with batch norm and dropout; its states."""

import json

import jax
import jax.numpy as jnp
import optax
from flax import nnx

x = jax.random.normal(jax.random.key(1), (8, 8, 8, 3))
y = jnp.arange(8) % 4
report = {}


def total(a):
    return [float(jnp.sum(v * v)) for v in jax.tree.leaves(a)]


class Net(nnx.Module):
    def __init__(self, rngs):
        self.convolution = nnx.Conv(3, 4, (3, 3), rngs=rngs)
        self.norm = nnx.BatchNorm(4, rngs=rngs)
        self.dropout = nnx.Dropout(0.3, rngs=rngs)
        self.head = nnx.Linear(64, 4, rngs=rngs)

    def __call__(self, x):
        x = nnx.relu(self.norm(self.convolution(x)))
        x = nnx.max_pool(x, (2, 2), strides=(2, 2)).reshape(x.shape[0], -1)
        return self.head(self.dropout(x))


model = Net(nnx.Rngs(0))
optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)


@nnx.jit
def step(model, optimizer):
    def loss(model):
        return optax.softmax_cross_entropy_with_integer_labels(model(x), y).mean()

    value, grads = nnx.value_and_grad(loss)(model)
    optimizer.update(model, grads)
    return value


report["training"] = [float(step(model, optimizer)) for _ in range(10)]
model.eval()
report["trained"] = total(model(x))
graph, params, rest = nnx.split(model, nnx.Param, ...)
report["split"] = total(params)
report["merge"] = total(nnx.merge(graph, params, rest)(x))
sequence, rngs = x[:, 0], nnx.Rngs(3)
report["norms"] = total(
    [nnx.LayerNorm(3, rngs=rngs)(sequence), nnx.RMSNorm(3, rngs=rngs)(sequence)]
)
report["embed"] = total(nnx.Embed(5, 4, rngs=rngs)(y))
attention = nnx.MultiHeadAttention(2, 3, 6, rngs=rngs, decode=False)
report["attention"] = total(attention(sequence))
report["gru"] = total(nnx.RNN(nnx.GRUCell(3, 5, rngs=rngs))(sequence))
report["sequential"] = total(nnx.Sequential(nnx.Linear(3, 4, rngs=rngs), nnx.gelu)(sequence))


@nnx.vmap(in_axes=0, out_axes=0)
def several(key):
    return nnx.Linear(3, 2, rngs=nnx.Rngs(key))


report["vmap"] = total(nnx.state(several(jax.random.split(jax.random.key(5), 3))))
print(json.dumps(report))
