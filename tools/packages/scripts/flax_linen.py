"""flax.linen: layers, and training of a network with batch norm and dropout; its files."""

import json

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax import serialization, traverse_util
from flax.training import train_state

x = jax.random.normal(jax.random.key(1), (8, 8, 8, 3))
y = jnp.arange(8) % 4
report = {}


def total(a):
    return [float(jnp.sum(v * v)) for v in jax.tree.leaves(a)]


class Net(nn.Module):
    width: int = 4

    @nn.compact
    def __call__(self, x, train):
        x = nn.Conv(self.width, (3, 3), use_bias=False)(x)
        x = nn.relu(nn.BatchNorm(use_running_average=not train)(x))
        x = nn.max_pool(x, (2, 2), strides=(2, 2)).reshape(x.shape[0], -1)
        x = nn.Dropout(0.3, deterministic=not train)(x)
        return nn.Dense(4)(nn.gelu(nn.LayerNorm()(nn.Dense(16)(x))))


class State(train_state.TrainState):
    batch_stats: dict


net = Net()
variables = net.init(jax.random.key(0), x, False)
state = State.create(
    apply_fn=net.apply, params=variables["params"], tx=optax.adam(1e-2),
    batch_stats=variables["batch_stats"],
)  # fmt: skip


@jax.jit
def step(state, key):
    def loss(params):
        logits, new = state.apply_fn(
            {"params": params, "batch_stats": state.batch_stats}, x, True,
            rngs={"dropout": key}, mutable=["batch_stats"],
        )  # fmt: skip
        return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), new

    (value, new), grads = jax.value_and_grad(loss, has_aux=True)(state.params)
    return state.apply_gradients(grads=grads, batch_stats=new["batch_stats"]), value


report["training"] = []
for i in range(10):
    state, value = step(state, jax.random.key(i))
    report["training"].append(float(value))
report["trained"] = total([state.params, state.batch_stats])
data = serialization.to_bytes(state.params)
report["file"] = [len(data), *total(serialization.from_bytes(variables["params"], data))]
report["names"] = sorted("/".join(k) for k in traverse_util.flatten_dict(state.params))
sequence = x[:, 0]
layers = {
    "attention": nn.MultiHeadDotProductAttention(num_heads=2, qkv_features=6),
    "norms": nn.Sequential([nn.GroupNorm(num_groups=3), nn.RMSNorm(), nn.Dense(2)]),
    "gru": nn.RNN(nn.GRUCell(5)), "lstm": nn.RNN(nn.OptimizedLSTMCell(5)),
    "dense general": nn.DenseGeneral((2, 3)), "transposed": nn.ConvTranspose(4, (3,)),
    "remat": nn.remat(nn.Dense)(3), "bidirectional": nn.Bidirectional(
        nn.RNN(nn.SimpleCell(3)), nn.RNN(nn.SimpleCell(3))), "glu": nn.Sequential([
            nn.Dense(6), nn.glu]), "weight norm": nn.WeightNorm(nn.Dense(3)),
}  # fmt: skip
for name, layer in layers.items():
    found, made = layer.init_with_output(jax.random.key(2), sequence)
    report[name] = total([found, made])
embed = nn.Embed(5, 4)
made = embed.init(jax.random.key(3), y)
report["embed"] = total([embed.apply(made, y), embed.apply(made, x[0, 0, :, :1].repeat(4, 1),
                                                          method="attend")])  # fmt: skip


class Stack(nn.Module):
    @nn.compact
    def __call__(self, x):
        block = nn.scan(
            Block, variable_axes={"params": 0}, split_rngs={"params": True}, length=3,
        )  # fmt: skip
        self.sow("intermediates", "x", x)
        return block()(x, None)[0]


class Block(nn.Module):
    @nn.compact
    def __call__(self, x, _):
        return x + nn.Dense(3)(jnp.tanh(x)), None


found, made = Stack().init_with_output(jax.random.key(4), sequence)
report["scan"] = total([found, made])
several = nn.vmap(nn.Dense, variable_axes={"params": 0}, split_rngs={"params": True})
report["vmap"] = total(several(4).init_with_output(jax.random.key(5), sequence))
report["tabulate"] = [len(nn.Dense(3).tabulate(jax.random.key(0), sequence)) > 100]
print(json.dumps(report))
