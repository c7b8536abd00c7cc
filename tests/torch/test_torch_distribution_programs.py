"""Programs that people write with distributions: steps beside PyTorch's, and training."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import weft as wf  # noqa: E402

R = np.random.default_rng(0)
DATA = {
    "states": R.normal(size=(32, 4)), "actions": R.integers(0, 4, 32), "returns": R.normal(size=32),
    "images": R.integers(0, 2, (16, 8)).astype(float), "noise": R.normal(size=(16, 2)),
    "points": np.exp(R.normal(size=(64, 2))) * 0.7 + 0.2, "inputs": R.normal(size=(24, 3)),
    "targets": R.normal(size=24), "draws": R.normal(size=(8, 3)),
}  # fmt: skip


def actor_critic(t, p, d):
    """REINFORCE with a learned baseline and an entropy bonus."""
    hidden = (d["states"] @ p["w"]).tanh()
    policy = t.distributions.Categorical(logits=hidden @ p["policy"])
    value = (hidden @ p["value"]).squeeze(-1)
    advantage = d["returns"] - value.detach()
    gain = policy.log_prob(d["actions"]) * advantage + 0.01 * policy.entropy()
    return -gain.mean() + ((value - d["returns"]) ** 2).mean()


def vae(t, p, d):
    """The negative evidence lower bound of a variational autoencoder."""
    D = t.distributions
    hidden = (d["images"] @ p["encoder"]).tanh()
    code = D.Normal(hidden @ p["mean"], (hidden @ p["log_scale"]).exp())
    z = code.mean + code.stddev * d["noise"]
    pixels = D.Independent(D.Bernoulli(logits=z @ p["decoder"]), 1)
    prior = D.Normal(t.zeros_like(z), t.ones_like(z))
    return (D.kl_divergence(code, prior).sum(-1) - pixels.log_prob(d["images"])).mean()


def flow(t, p, d):
    """A normalizing flow, fitted by maximum likelihood."""
    D = t.distributions
    base = D.Independent(D.Normal(t.zeros_like(p["shift"]), t.ones_like(p["shift"])), 1)
    parts = [
        D.AffineTransform(p["shift"], p["scale"].exp(), event_dim=1),
        D.IndependentTransform(D.ExpTransform(), 1),
        D.IndependentTransform(D.PowerTransform(p["power"].exp()), 1),
        D.AffineTransform(0.0, p["scale2"].exp(), event_dim=1),
    ]
    return -D.TransformedDistribution(base, parts, validate_args=False).log_prob(d["points"]).mean()


def regression(t, p, d):
    """Bayesian regression: a normal posterior of the weights with a full covariance."""
    D = t.distributions
    root = D.transform_to(D.constraints.lower_cholesky)(p["root"])
    posterior = D.MultivariateNormal(p["center"], scale_tril=root)
    prior = D.MultivariateNormal(t.zeros_like(p["center"]), t.eye(3, dtype=t.float64))
    weights = p["center"] + d["draws"] @ root.mT
    noise = D.Gamma(p["a"].exp(), 1.0).mean
    likelihood = D.StudentT(4.0, weights @ d["inputs"].mT, noise)
    fit = likelihood.log_prob(d["targets"]).sum(-1).mean()
    return D.kl_divergence(posterior, prior) - fit


PROGRAMS = {
    actor_critic: {"w": (4, 8), "policy": (8, 4), "value": (8, 1)},
    vae: {"encoder": (8, 6), "mean": (6, 2), "log_scale": (6, 2), "decoder": (2, 8)},
    flow: {"shift": (2,), "scale": (2,), "power": (2,), "scale2": (2,)},
    regression: {"center": (3,), "root": (3, 3), "a": ()},
}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_steps_are_those_of_torch_and_learn(program):
    starts = {}
    for name, shape in PROGRAMS[program].items():
        starts[name] = np.random.default_rng(len(name)).normal(size=shape) * 0.5
    found = []
    for t, steps in ((torch, 6), (wf, 6), (wf, 60)):
        p = {name: t.tensor(x).requires_grad_() for name, x in starts.items()}
        d = {name: t.tensor(x) for name, x in DATA.items()}
        optimizer = t.optim.SGD([*p.values()], lr=0.02 if program is regression else 0.1)
        losses = []
        for _ in range(steps):
            optimizer.zero_grad()
            loss = program(t, p, d)
            loss.backward()
            optimizer.step()
            losses.append(float(loss.detach()))
        found.append((losses, [x.detach().numpy() for x in p.values()]))
    (theirs, their_p), (ours, our_p), (more, _) = found
    np.testing.assert_allclose(ours, theirs, rtol=1e-8)
    for a, b in zip(our_p, their_p, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)
    assert more[-1] < more[5] < more[0]
