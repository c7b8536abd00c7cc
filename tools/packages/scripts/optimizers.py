"""optax: 10 steps of each optimizer on one network, and its losses and schedules."""

import json

import jax
import jax.numpy as jnp
import optax

NAMES = (
    "adabelief", "adadelta", "adafactor", "adagrad", "adam", "adamax", "adamaxw", "adamw", "adan",
    "amsgrad", "fromage", "lamb", "lars", "lion", "nadam", "nadamw", "noisy_sgd", "novograd",
    "optimistic_gradient_descent", "radam", "rmsprop", "rprop", "sgd", "sign_sgd", "sm3", "yogi",
)  # fmt: skip
x = jax.random.normal(jax.random.key(1), (16, 4))
y = jnp.sin(x.sum(1))


def loss(params):
    h = jnp.tanh(x @ params["w"] + params["b"])
    return jnp.mean((h @ params["v"] - y) ** 2)


def start():
    w, v = jax.random.split(jax.random.key(0))
    weights = {"w": jax.random.normal(w, (4, 8)), "b": jnp.zeros(8)}
    return weights | {"v": jax.random.normal(v, (8,)) * 0.1}


def run(optimizer, steps=10, extra=False):
    params = start()
    state = optimizer.init(params)

    @jax.jit
    def step(params, state):
        value, grads = jax.value_and_grad(loss)(params)
        more = {"value": value, "grad": grads, "value_fn": loss} if extra else {}
        updates, state = optimizer.update(grads, state, params, **more)
        return optax.apply_updates(params, updates), state, value

    for _ in range(steps):
        params, state, _ = step(params, state)
    return [float(loss(params)), *[float(jnp.sum(p * p)) for p in jax.tree.leaves(params)]]


report = {}
for name in NAMES:
    seeded = {"eta": 0.01, "gamma": 0.55, "key": 0} if name == "noisy_sgd" else {}
    report[name] = run(getattr(optax, name)(learning_rate=0.02, **seeded))
report["polyak_sgd"] = run(optax.polyak_sgd(), extra=True)
report["lbfgs"] = run(optax.lbfgs(), extra=True)
schedule = optax.warmup_cosine_decay_schedule(0.0, 0.1, 3, 10)
report["chain"] = run(optax.chain(optax.clip_by_global_norm(0.5), optax.adamw(schedule)))
report["masked"] = run(optax.masked(optax.sgd(0.1), {"w": True, "b": False, "v": True}))
report["steps"] = run(optax.MultiSteps(optax.adam(0.05), every_k_schedule=2))
labels = {"w": "slow", "b": "fast", "v": "fast"}
parts = {"slow": optax.sgd(0.01), "fast": optax.adam(0.1)}
report["multi_transform"] = run(optax.multi_transform(parts, labels))
report["inject_hyperparams"] = run(optax.inject_hyperparams(optax.adam)(schedule))
report["schedules"] = [
    float(s(i)) for i in (0, 2, 7) for s in (
        schedule, optax.exponential_decay(0.1, 3, 0.5), optax.piecewise_constant_schedule(
            1.0, {2: 0.5}), optax.linear_onecycle_schedule(10, 0.1), optax.sgdr_schedule(
            [{"init_value": 0.0, "peak_value": 0.1, "decay_steps": 5, "warmup_steps": 1,
              "end_value": 0.0}]))
]  # fmt: skip
logits, labels = x[:, :3], jnp.arange(16) % 3
hot = jax.nn.one_hot(labels, 3)
report["losses"] = [
    float(jnp.sum(v)) for v in (
        optax.softmax_cross_entropy_with_integer_labels(logits, labels),
        optax.softmax_cross_entropy(logits, hot), optax.sigmoid_binary_cross_entropy(logits, hot),
        optax.huber_loss(logits, hot), optax.l2_loss(logits, hot), optax.log_cosh(logits, hot),
        optax.hinge_loss(logits[:, 0], 2 * hot[:, 0] - 1), optax.cosine_similarity(logits, hot),
        optax.kl_divergence(jax.nn.log_softmax(logits), hot), optax.smooth_labels(hot, 0.1),
        optax.sigmoid_focal_loss(logits, hot), optax.convex_kl_divergence(
            jax.nn.log_softmax(logits), jax.nn.softmax(logits * 2)),
        optax.ctc_loss(x.reshape(2, 8, 4), jnp.zeros((2, 8)), jnp.array([[1, 2], [3, 1]]),
                       jnp.zeros((2, 2))))
]  # fmt: skip
print(json.dumps(report))
