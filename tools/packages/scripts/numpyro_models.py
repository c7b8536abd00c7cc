"""NumPyro: NUTS, HMC and variational inference of small models, and what they predict."""

import json

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer import HMC, MCMC, NUTS, SVI, Predictive, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal

jax.config.update("jax_enable_x64", True)
x = jax.random.normal(jax.random.key(0), (20,))
y = 2 * x + 1 + 0.3 * jax.random.normal(jax.random.key(1), (20,))
report = {}


def line(x, y=None):
    slope = numpyro.sample("slope", dist.Normal(0, 1))
    offset = numpyro.sample("offset", dist.Normal(0, 1))
    noise = numpyro.sample("noise", dist.HalfCauchy(1.0))
    numpyro.sample("y", dist.Normal(offset + slope * x, noise), obs=y)


def groups(values):
    mean = numpyro.sample("mean", dist.Normal(0, 5))
    spread = numpyro.sample("spread", dist.LogNormal(0, 1))
    with numpyro.plate("groups", 4):
        own = numpyro.sample("own", dist.Normal(mean, spread))
    numpyro.sample("values", dist.StudentT(4.0, own, 1.0), obs=values)


def sampled(kernel, *data):
    run = MCMC(kernel, num_warmup=10, num_samples=5, progress_bar=False)
    run.run(jax.random.key(2), *data)
    return run.get_samples()


def total(tree):
    return [float(jnp.sum(v * v)) for v in jax.tree.leaves(tree)]


found = sampled(NUTS(line), x, y)
report["nuts"] = total(found)
report["predicted"] = total(Predictive(line, found)(jax.random.key(3), x))
report["groups"] = total(sampled(NUTS(groups), jnp.array([1.0, 3.0, -2.0, 0.5])))
report["hmc"] = total(sampled(HMC(line, num_steps=5), x, y))
svi = SVI(line, AutoNormal(line), numpyro.optim.Adam(0.05), Trace_ELBO())
fitted = svi.run(jax.random.key(4), 20, x, y, progress_bar=False)
report["svi"] = [float(v) for v in fitted.losses]
print(json.dumps(report))
