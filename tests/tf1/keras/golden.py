"""Expected results of layers, in NumPy: a formula each, weights in Keras' order."""

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def hard_sigmoid(x):
    return np.clip(0.2 * x + 0.5, 0, 1)


def patches(x, window, step):
    """Windows of images (n, rows, columns, c), without padding."""
    n, rows, columns, _ = x.shape
    places = [
        (i, j)
        for i in range(0, rows - window[0] + 1, step)
        for j in range(0, columns - window[1] + 1, step)
    ]
    down = len(range(0, rows - window[0] + 1, step))
    found = np.stack([x[:, i : i + window[0], j : j + window[1]] for i, j in places], 1)
    return found.reshape(n, down, -1, *found.shape[2:])


def lstm(x, w, u, b, activation=hard_sigmoid, mask=None):
    """All outputs of a long short-term memory; gates i, f, c, o."""
    n = u.shape[0]
    h = c = np.zeros((len(x), n))
    found = []
    for t in range(x.shape[1]):
        i, f, g, o = np.split(x[:, t] @ w + h @ u + b, 4, 1)
        new_c = activation(f) * c + activation(i) * np.tanh(g)
        new_h = activation(o) * np.tanh(new_c)
        kept = np.ones((len(x), 1), bool) if mask is None else mask[:, t, None]
        h, c = np.where(kept, new_h, h), np.where(kept, new_c, c)
        found.append(h)
    return np.stack(found, 1)


def gru(x, w, u, b):
    """All outputs of a gated recurrent unit; gates z, r, h; the reset gate acts on the state."""
    n = u.shape[0]
    h = np.zeros((len(x), n))
    found = []
    for t in range(x.shape[1]):
        xs = np.split(x[:, t] @ w + b, 3, 1)
        z = hard_sigmoid(xs[0] + h @ u[:, :n])
        r = hard_sigmoid(xs[1] + h @ u[:, n : 2 * n])
        new = np.tanh(xs[2] + (r * h) @ u[:, 2 * n :])
        h = z * h + (1 - z) * new
        found.append(h)
    return np.stack(found, 1)
