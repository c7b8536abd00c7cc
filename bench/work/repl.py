"""Small calls whose values are read at once, as at a prompt: a lap is what is read once."""

from __future__ import annotations

import numpy as np


def total(torch):
    x, y = torch.randn(100, 100), torch.randn(100, 100)

    def run():
        for _ in range(200):
            yield (x + y).sum().item()

    return run


def elements(torch):
    """A sum of vectors as a beginner writes it; the vector is read at its end."""
    n = 500
    a, b = torch.randn(n), torch.randn(n)

    def run():
        c = torch.zeros(n)
        for i in range(n - 1):
            c[i] = a[i] + b[i]
            yield None
        c[n - 1] = a[n - 1] + b[n - 1]
        yield float(c.sum())

    return run


def sizes(torch):
    """Four calls on vectors of 200 different sizes."""
    drawn = np.random.default_rng(0).permutation(np.arange(100, 1100))[:200]
    vectors = [torch.randn(int(n)) for n in drawn]

    def run():
        for x in vectors:
            yield ((x * 2 + 1).tanh()).sum().item()

    return run


def _policy(nn):
    return nn.Sequential(nn.Linear(4, 128), nn.ReLU(), nn.Linear(128, 2))


def policy(torch):
    """The best of two actions, 200 times."""
    model = _policy(torch.nn)
    states = np.random.default_rng(0).standard_normal((200, 4), np.float32)

    @torch.no_grad()
    def run():
        for state in states:
            chances = torch.softmax(model(torch.from_numpy(state)[None]), dim=-1)
            yield chances.argmax(-1).item()

    return run


def episodes(torch):
    """REINFORCE: six episodes of 12 to 60 drawn actions each, learned after their end."""
    model = _policy(torch.nn)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    rng = np.random.default_rng(0)

    def act(state):
        chances = torch.softmax(model(torch.from_numpy(state)[None]), dim=-1)
        action = torch.multinomial(chances, 1)
        return action.item(), torch.log(chances.gather(1, action))[0, 0]

    def learn(rewards, logs):
        returns, total = [], 0.0
        for reward in reversed(rewards):
            total = reward + 0.99 * total
            returns.insert(0, total)
        returns = torch.tensor(returns)
        returns = (returns - returns.mean()) / (returns.std() + 1e-6)
        loss = -(torch.stack(logs) * returns).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    def run():
        for count in rng.integers(12, 61, 6):
            rewards, logs = [], []
            for state in rng.standard_normal((count, 4), np.float32):
                action, log = act(state)
                rewards.append(float(action))
                logs.append(log)
            yield learn(rewards, logs)

    return run


def notebook(torch):
    """Thirty cells, each of which shows its value, run once from top to bottom."""
    nn, F, linalg = torch.nn, torch.nn.functional, torch.linalg
    data = np.random.default_rng(0).standard_normal((200, 5), np.float32)
    known: dict[str, object] = {"torch": torch, "nn": nn, "F": F, "linalg": linalg, "data": data}

    def run():
        for cell in CELLS:
            *statements, last = cell.split("; ")
            exec("; ".join(statements), known)
            yield repr(eval(last, known))

    return run


CELLS = (
    "x = torch.from_numpy(data); x.shape",
    "x[:3]",
    "x.mean(0)",
    "x.std(0)",
    "x = (x - x.mean(0)) / x.std(0); x.max()",
    "w = torch.tensor([1.0, -2.0, 0.5, 0.0, 3.0]); w",
    "y = x @ w + 0.1 * torch.randn(200); y[:5]",
    "(x.T @ x / 200)",
    "((x * y[:, None]).mean(0))",
    "linalg.solve(x.T @ x, x.T @ y)",
    "residual = y - x @ linalg.solve(x.T @ x, x.T @ y); residual.square().mean()",
    "residual.abs().max()",
    "torch.sort(y).values[:4]",
    "y.argmax()",
    "(y > 0).sum()",
    "x[y > 0].mean(0)",
    "torch.where(y > 0, y, torch.zeros(200)).sum()",
    "labels = (y > 0).long(); labels[:10]",
    "torch.bincount(labels)",
    "model = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 2)); model(x[:2])",
    "F.cross_entropy(model(x), labels)",
    "loss = F.cross_entropy(model(x), labels); loss.backward(); model[0].bias.grad",
    "torch.cat([p.grad.flatten() for p in model.parameters()]).norm()",
    "optimizer = torch.optim.SGD(model.parameters(), lr=0.5); optimizer.step(); model[2].bias",
    "F.cross_entropy(model(x), labels)",
    "(model(x).argmax(1) == labels).float().mean()",
    "torch.softmax(model(x[:3]), 1)",
    "torch.cumsum(y, 0)[-1]",
    "torch.stack([y.min(), y.median(), y.max()])",
    "torch.linspace(0, 1, 7).exp().tolist()",
)
