"""diffrax: ordinary, stiff and stochastic equations, and a neural one that is fitted."""

import json

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import optax

jax.config.update("jax_enable_x64", True)
times = jnp.linspace(0.0, 2.0, 5)
controller = diffrax.PIDController(rtol=1e-4, atol=1e-6)
report = {}


def solved(field, solver, args=None, **options):
    options = {"stepsize_controller": controller} | options
    return diffrax.diffeqsolve(
        diffrax.ODETerm(field), solver, t0=0.0, t1=2.0, dt0=0.05, y0=jnp.array([1.0, 0.5]),
        args=args, saveat=diffrax.SaveAt(ts=times), **options,
    )  # fmt: skip


def spring(t, y, k):
    return jnp.stack([y[1], -k * y[0] - 0.1 * y[1]])


for solver in (diffrax.Tsit5(), diffrax.Dopri5(), diffrax.Kvaerno3()):
    found = solved(spring, solver, 3.0)
    report[type(solver).__name__] = [*found.ys[-1].tolist(), int(found.stats["num_steps"])]
slope = jax.value_and_grad(lambda k: jnp.sum(solved(spring, diffrax.Tsit5(), k).ys ** 2))
report["gradient"] = [float(v) for v in slope(3.0)]
noise = diffrax.VirtualBrownianTree(0.0, 2.0, tol=1e-3, shape=(2,), key=jax.random.key(0))
terms = diffrax.MultiTerm(
    diffrax.ODETerm(lambda t, y, args: -y),
    diffrax.ControlTerm(lambda t, y, args: 0.1 * jnp.eye(2), noise),
)
path = diffrax.diffeqsolve(terms, diffrax.Euler(), 0.0, 2.0, 0.1, jnp.ones(2))
report["noise"] = path.ys[-1].tolist()

target = solved(spring, diffrax.Tsit5(), 2.0).ys
model = eqx.nn.MLP(2, 2, 8, 1, jnp.tanh, key=jax.random.key(1))
optimizer = optax.adam(1e-2)
state = optimizer.init(eqx.filter(model, eqx.is_inexact_array))


@eqx.filter_jit
def step(model, state):
    def loss(model):
        ys = solved(lambda t, y, args: model(y), diffrax.Tsit5()).ys
        return jnp.mean((ys - target) ** 2)

    value, grads = eqx.filter_value_and_grad(loss)(model)
    updates, state = optimizer.update(grads, state)
    return eqx.apply_updates(model, updates), state, value


report["fit"] = []
for _ in range(4):
    model, state, value = step(model, state)
    report["fit"].append(float(value))
print(json.dumps(report))
