"""flax.nnx: layers, training with batch norm and dropout, `vmap`, `split` and `merge`."""

import json

import jax
import jax.numpy as jnp
import optax
from flax import nnx

x = jax.random.normal(jax.random.key(1), (8, 6, 6, 3))
words = jnp.arange(10).reshape(2, 5)
y = jnp.arange(8) % 4
report = {}


def total(a):
    return [float(jnp.sum(v * v)) for v in jax.tree.leaves(a)]


class Net(nnx.Module):
    def __init__(self, rngs):
        self.conv = nnx.Conv(3, 4, (3, 3), use_bias=False, rngs=rngs)
        self.norm = nnx.BatchNorm(4, rngs=rngs)
        self.drop = nnx.Dropout(0.3, rngs=rngs)
        self.out = nnx.Linear(36, 4, rngs=rngs)

    def __call__(self, x):
        x = nnx.relu(self.norm(self.conv(x)))
        x = nnx.max_pool(x, (2, 2), strides=(2, 2)).reshape(x.shape[0], -1)
        return self.out(self.drop(x))


@nnx.jit
def step(net, optimizer, metrics, x, y):
    def loss(net):
        logits = net(x)
        return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), logits

    (found, logits), slopes = nnx.value_and_grad(loss, has_aux=True)(net)
    optimizer.update(net, slopes)
    metrics.update(loss=found, logits=logits, labels=y)
    return found


net = Net(nnx.Rngs(0))
optimizer = nnx.Optimizer(net, optax.adam(1e-2), wrt=nnx.Param)
metrics = nnx.MultiMetric(loss=nnx.metrics.Average("loss"), accuracy=nnx.metrics.Accuracy())
report["losses"] = [float(step(net, optimizer, metrics, x, y)) for _ in range(5)]
report["metrics"] = total(metrics.compute())
net.eval()
report["evaluation"] = total(net(x))
graph, state = nnx.split(net)
report["merged"] = total(nnx.merge(graph, state)(x))

rngs = nnx.Rngs(2)
h = nnx.Embed(10, 8, rngs=rngs)(words)
mask = nnx.make_causal_mask(words)
attention = nnx.MultiHeadAttention(num_heads=2, in_features=8, decode=False, rngs=rngs)
report["attention"] = total(attention(nnx.LayerNorm(8, rngs=rngs)(h), mask=mask))
report["recurrent"] = total(nnx.RNN(nnx.GRUCell(8, 6, rngs=rngs), rngs=rngs)(h))


@nnx.split_rngs(splits=3)
@nnx.vmap(in_axes=0, out_axes=0)
def several(rngs):
    return nnx.Linear(8, 8, rngs=rngs)


stacked = several(nnx.Rngs(3))
report["stacked"] = total(nnx.state(stacked, nnx.Param))
report["mapped"] = total(nnx.vmap(lambda m, h: m(h), in_axes=(0, None))(stacked, h))
print(json.dumps(report))
