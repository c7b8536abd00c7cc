"""Small training loops whose state identifies the step."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

import weft
from weft import nn

BATCH = 6


@dataclass(frozen=True)
class Loop:
    """The model that is trained.

    Attributes:
        kind: `mlp` with Adam, or `images`: a convolution, BatchNorm and SGD with momentum.
        width: of the layers.
        steps: number of steps.
        reads: whether each step's loss is read.
        exact: compiled, with reproducible bits; else interpreted, in double precision.
    """

    kind: str
    width: int
    steps: int
    reads: bool
    exact: bool = True


Arrays = list[np.ndarray[Any, Any]]
PARTS = ("parameters", "optimizer", "statistics")
State = dict[str, Arrays]  # what has changed so far, by PARTS
CLOSE = 1e-9  # relative to the largest number: one step changes more


def alike(one: Arrays, two: Arrays, exact: bool) -> bool:
    """Whether arrays are equal: bitwise, or up to rounding in double precision."""
    if exact:
        return [x.tobytes() for x in one] == [x.tobytes() for x in two]
    return len(one) == len(two) and all(
        np.allclose(x, y, rtol=CLOSE, atol=CLOSE * np.abs(y).max(initial=0.0))
        for x, y in zip(one, two, strict=True)
    )


class Training:
    """A loop at some step; equal arguments give equal numbers."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.step = 0  # that is running, or comes next
        self.forward_begun = False
        weft.manual_seed(1)
        self.dtype = weft.float32 if loop.exact else weft.float64
        self.model = _model(loop).to(self.dtype)
        self.optimizer = _optimizer(loop, self.model)
        random = np.random.default_rng(2)
        shape = (BATCH, loop.width) if loop.kind == "mlp" else (BATCH, 3, 8, 8)
        drawn = random.standard_normal((loop.steps, *shape))
        self.inputs = [weft.tensor(x, dtype=self.dtype) for x in drawn]

    def run(self) -> None:
        """The remaining steps."""
        while self.step < self.loop.steps:
            self.one()

    def one(self) -> None:
        """One step."""
        self.optimizer.zero_grad()
        self.forward_begun = True
        loss = self.model(self.inputs[self.step]).square().mean()
        loss.backward()
        self.optimizer.step()
        self.forward_begun = False
        self.step += 1
        if self.loop.reads:
            loss.item()

    def state(self) -> State:
        """The current state."""
        told = self.optimizer.state_dict()["state"]
        moments = [value for key in sorted(told) for _, value in sorted(told[key].items())]
        parts = (self.model.parameters(), moments, self.model.buffers())
        return {name: [array_of(x) for x in xs] for name, xs in zip(PARTS, parts, strict=True)}

    def put_back(self, step: int, state: State) -> None:
        """Continues from a step, with its statistics."""
        self.step, self.forward_begun = step, False
        with weft.no_grad():
            for buffer, values in zip(self.model.buffers(), state["statistics"], strict=True):
                buffer.copy_(weft.tensor(values))


def _model(loop: Loop) -> nn.Module:
    w = loop.width
    if loop.kind == "mlp":
        return nn.Sequential(nn.Linear(w, 2 * w), nn.Tanh(), nn.Linear(2 * w, 3))
    return nn.Sequential(
        nn.Conv2d(3, w, 3, padding=1, bias=False),  # a bias would have rounding as its gradient
        nn.BatchNorm2d(w), nn.ReLU(), nn.Flatten(), nn.Linear(64 * w, 3),
    )  # fmt: skip


def _optimizer(loop: Loop, model: nn.Module) -> Any:
    if loop.kind == "mlp":
        return weft.optim.Adam(model.parameters(), lr=0.01)
    return weft.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


def array_of(x: Any) -> np.ndarray[Any, Any]:
    """The values of a tensor, an array or a number."""
    return np.array(x.numpy(force=True) if isinstance(x, weft.Tensor) else x)


def digest(values: Iterable[Any]) -> str:
    """A digest of the bits of tensors, arrays and numbers."""
    text = hashlib.sha256()
    for value in values:
        text.update(array_of(value).tobytes())
    return text.hexdigest()[:16]
