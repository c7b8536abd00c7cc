"""Programs to compile, and digests of their results, which must never change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import weft
from tools.attack.training import Loop, Training, array_of, digest
from weft import config

Program = Callable[[int], list[Any]]


def _drawn(*shape: int) -> weft.Tensor:
    return weft.tensor(np.random.default_rng(5).standard_normal(shape).astype(np.float32))


def _trained(size: int) -> list[Any]:
    training = Training(Loop("mlp", size, 2, True))
    training.run()
    return list(training.model.parameters())


def _images(size: int) -> list[Any]:
    training = Training(Loop("images", size, 2, False))
    training.run()
    return [*training.model.parameters(), *training.model.buffers()]


def _softmax(size: int) -> list[Any]:
    x = _drawn(size, 2 * size).requires_grad_()
    y = (x @ x.T).softmax(-1)
    (y * y).sum().backward()
    return [y, x.grad]


def _sorted(size: int) -> list[Any]:
    x = _drawn(size, size)
    return [x.sort(dim=0).values, x.cumsum(1), x[x > 0].sum(), x.std(0)]


def _deferred(size: int) -> list[Any]:
    tf1 = weft.tf1
    with tf1.Graph().as_default(), tf1.Session() as session:
        w = tf1.Variable(tf1.constant(_drawn(size, 3).numpy()))
        loss = tf1.reduce_sum(tf1.square(tf1.matmul(w, tf1.transpose(w)) - 1.0))
        step = tf1.train.GradientDescentOptimizer(1e-3).minimize(loss)
        session.run(tf1.global_variables_initializer())
        for _ in range(3):
            session.run(step)
        return [session.run(w)]


PROGRAMS: dict[str, Program] = {
    "trained": _trained, "images": _images, "softmax": _softmax, "sorted": _sorted,
    "deferred": _deferred,
}  # fmt: skip


def measured(name: str, size: int, **settings: Any) -> tuple[str, list[float]]:
    """Digest and mean magnitudes of a program's results, on one thread or on all."""
    with config.override(**{"compile": True, "threads": 1, **settings}):
        values = PROGRAMS[name](size)
        return digest(values), [float(np.abs(array_of(x)).mean()) for x in values]


def result(name: str, size: int, **settings: Any) -> str:
    """The digest of a program's results."""
    return measured(name, size, **settings)[0]
