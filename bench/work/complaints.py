"""Small arrays in loops, what JAX's users call slow on CPUs since XLA runs kernels one by one.

Programs of our own after jax-ml/jax#26145 (a simulation's many tiny kernels), #36799 (a scan that
carries a matrix of 3x3), #37465 (sums of slices) and #25190 (a while loop). Weft and JAX compile
the loop, PyTorch's is Python's.
"""

from __future__ import annotations

import numpy as np

COMPARTMENTS, STEPS, TURNS, SIDE, SEARCH = 8, 1000, 1000, 96, 4096
DT = 0.025  # milliseconds


def _membrane(xp, state):
    """A step of Hodgkin's and Huxley's neuron in compartments: what each of them becomes."""
    v, m, h, n = state
    am = 0.1 * (v + 40) / (1 - xp.exp(-(v + 40) / 10) + 1e-6)
    ah, bm = 0.07 * xp.exp(-(v + 65) / 20), 4 * xp.exp(-(v + 65) / 18)
    bh, bn = 1 / (1 + xp.exp(-(v + 35) / 10)), 0.125 * xp.exp(-(v + 65) / 80)
    an = 0.01 * (v + 55) / (1 - xp.exp(-(v + 55) / 10) + 1e-6)
    m, h, n = (
        gate + DT * (opens * (1 - gate) - closes * gate)
        for gate, opens, closes in ((m, am, bm), (h, ah, bh), (n, an, bn))
    )
    current = 120 * m**3 * h * (v - 50) + 36 * n**4 * (v + 77) + 0.3 * (v + 54.4)
    return v + DT * (10 - current), m, h, n


def _coupled(xp, state, mixing):
    v, m, h, n = _membrane(xp, state)
    return v + DT * (mixing @ v), m, h, n


def _neuron_start():
    mixing = np.eye(COMPARTMENTS, k=1) + np.eye(COMPARTMENTS, k=-1)
    mixing -= np.diag(mixing.sum(0))
    start = [np.full(COMPARTMENTS, x, np.float32) for x in (-65.0, 0.05, 0.6, 0.32)]
    return start, mixing.astype(np.float32)


def neuron(torch):
    start, mixing = _neuron_start()
    start, mixing = [torch.from_numpy(x) for x in start], torch.from_numpy(mixing)

    def run():
        state = start
        for _ in range(STEPS):
            state = _coupled(torch, state, mixing)
        return state[0].tolist()

    return run


def neuron_weft(weft):
    func = weft.func
    start, mixing = _neuron_start()
    start, mixing = tuple(map(weft.from_numpy, start)), weft.from_numpy(mixing)

    @func.jit
    def simulated(state):
        turn = lambda s, _: (_coupled(weft, s, mixing), None)  # noqa: E731
        return func.scan(turn, state, None, length=STEPS)[0][0]

    return lambda: simulated(start).tolist()


def neuron_jax(jax):
    start, mixing = _neuron_start()

    @jax.jit
    def simulated(state):
        turn = lambda s, _: (_coupled(jax.numpy, s, mixing), None)  # noqa: E731
        return jax.lax.scan(turn, state, None, length=STEPS)[0][0]

    return lambda: simulated(tuple(start)).tolist()


def _turn(angle=1e-3):
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]], np.float64)


def rotation(torch):
    turn = torch.from_numpy(_turn())

    def run():
        x = torch.eye(3, dtype=torch.float64)
        for _ in range(TURNS):
            x = turn @ x
            x = x / x.square().sum(0).sqrt()
        return x.tolist()

    return run


def _normed(x):
    return x / (x * x).sum(0) ** 0.5


def rotation_weft(weft):
    func, turn = weft.func, weft.from_numpy(_turn())
    start = weft.eye(3, dtype=weft.float64)

    @func.jit
    def turned(x):
        return func.scan(lambda x, _: (_normed(turn @ x), None), x, None, length=TURNS)[0]

    return lambda: turned(start).tolist()


def rotation_jax(jax):
    jax.config.update("jax_enable_x64", True)
    turn = _turn()

    @jax.jit
    def turned(x):
        return jax.lax.scan(lambda x, _: (_normed(turn @ x), None), x, None, length=TURNS)[0]

    return lambda: turned(np.eye(3)).tolist()


def _cube():
    return np.random.default_rng(0).standard_normal((SIDE, SIDE, SIDE), np.float32)


def _roughness(x):
    steps = x[1:] - x[:-1], x[:, 1:] - x[:, :-1], x[:, :, 1:] - x[:, :, :-1]
    return sum((step * step).sum() for step in steps)


def differences(torch):
    x = torch.from_numpy(_cube()).requires_grad_()

    def run():
        x.grad = None
        loss = _roughness(x)
        loss.backward()
        return loss.item(), x.grad[0, 0, 0].item()

    return run


def differences_weft(weft):
    x = weft.from_numpy(_cube())
    compiled = weft.func.jit(weft.func.value_and_grad(_roughness))

    def run():
        loss, g = compiled(x)
        return loss.item(), g[0, 0, 0].item()

    return run


def differences_jax(jax):
    x = jax.numpy.asarray(_cube())
    compiled = jax.jit(jax.value_and_grad(_roughness))

    def run():
        loss, g = compiled(x)
        return float(loss), float(g[0, 0, 0])

    return run


def search(torch):
    values = torch.arange(SEARCH)

    def run():
        stop, most, place = values.max(), values[0], 0
        while most < stop:
            most = torch.maximum(most, values[place])
            place += 1
        return place

    return run


def search_weft(weft):
    values = weft.arange(SEARCH)

    @weft.func.jit
    def found(values):
        stop = values.max()
        turn = lambda s: (weft.maximum(s[0], values[s[1]]), s[1] + 1)  # noqa: E731
        return weft.while_loop(lambda s: s[0] < stop, turn, (values[0], weft.tensor(0)))[1]

    return lambda: found(values).item()


def search_jax(jax):
    values = jax.numpy.arange(SEARCH)

    @jax.jit
    def found(values):
        stop = values.max()
        turn = lambda s: (jax.numpy.maximum(s[0], values[s[1]]), s[1] + 1)  # noqa: E731
        return jax.lax.while_loop(lambda s: s[0] < stop, turn, (values[0], 0))[1]

    return lambda: int(found(values))
