"""What threads share: each kind has one step of one thread, and tells what is wrong at the end."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import weft
from weft import nn, optim

Random = np.random.Generator


@dataclass(frozen=True)
class Size:
    """How many threads, steps of each, and elements."""

    threads: int
    steps: int
    width: int


@dataclass(frozen=True)
class Shared:
    """One thing that threads share.

    Attributes:
        about: what it is, and what has been drawn.
        step: given the numbers of a thread and of its step.
        problem: what is wrong after all steps; empty if nothing is.
    """

    about: str
    step: Callable[[int, int], object]
    problem: Callable[[], str]


def _expected(about: str, found: Any, wanted: Any, rtol: float = 0.0) -> str:
    """How two arrays differ."""
    same = np.shape(found) == np.shape(wanted) and np.allclose(found, wanted, rtol, rtol)
    return "" if same else f"{about}: expected {np.asarray(wanted)}, got {np.asarray(found)}"


def accumulated(random: Random, size: Size) -> Shared:
    """Gradients that are added to one parameter: forward outside of the lock, backward inside."""
    p, lock = nn.Parameter(weft.ones(size.width)), threading.Lock()
    factor, reads = int(random.integers(1, 5)), bool(random.integers(2))
    about = f"gradients of {factor}, {reads=}"

    def step(thread: int, number: int) -> None:
        loss = (p * factor).sum()
        if reads:
            loss.item()
        with lock:
            loss.backward()

    wanted = [float(size.threads * size.steps * factor)] * size.width
    return Shared(about, step, lambda: _expected(about, p.grad.tolist(), wanted))


OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "SGD": lambda p: optim.SGD(p, 0.1, momentum=0.9, nesterov=True),
    **{
        name: (lambda p, name=name: getattr(optim, name)(p, 0.05))
        for name in [
            "Adadelta",
            "Adagrad",
            "Adam",
            "Adamax",
            "AdamW",
            "ASGD",
            "NAdam",
            "RAdam",
            "RMSprop",
            "Rprop",
        ]
    },
}


def trained(random: Random, size: Size) -> Shared:
    """One parameter that all threads train: as many steps of one thread end at the same value.

    The loss is linear, so the value at which a gradient was taken does not matter.
    """
    name = str(random.choice(list(OPTIMIZERS)))
    weight, outside = float(random.integers(1, 4)), bool(random.integers(2))
    both = [nn.Parameter(weft.ones(size.width)) for _ in range(2)]
    optimizers, lock = [OPTIMIZERS[name]([p]) for p in both], threading.Lock()
    about = f"{name}, slope {weight}, forward {outside=}"

    def loss(p: Any) -> Any:
        return (p * weight).sum()

    def step(thread: int, number: int) -> None:
        made = loss(both[0]) if outside else None
        with lock:
            optimizers[0].zero_grad()
            (made if made is not None else loss(both[0])).backward()
            optimizers[0].step()

    def problem() -> str:
        for _ in range(size.threads * size.steps):
            optimizers[1].zero_grad()
            loss(both[1]).backward()
            optimizers[1].step()
        return _expected(about, both[0].tolist(), both[1].tolist(), 1e-5)

    return Shared(about, step, problem)


def buffers(random: Random, size: Size) -> Shared:
    """Running statistics of one batch, and a buffer changed in place, under a lock."""
    norms, lock = [nn.BatchNorm1d(size.width) for _ in range(2)], threading.Lock()
    own = weft.zeros(size.width)
    x = weft.tensor(random.standard_normal((5, size.width)).astype(np.float32))
    reads = bool(random.integers(2))
    count = size.threads * size.steps

    def step(thread: int, number: int) -> None:
        with lock:
            y = norms[0](x)
            own.mul_(0.5).add_(1.0)
        if reads:
            y.sum().item()

    def problem() -> str:
        for _ in range(count):
            norms[1](x)
        pairs = zip(norms[0].buffers(), norms[1].buffers(), strict=True)
        found = [_expected("statistics", a.tolist(), b.tolist(), 1e-5) for a, b in pairs]
        wanted = np.full(size.width, 2 - 0.5 ** (count - 1), np.float32)
        return "".join([*found, _expected("a buffer", own.tolist(), wanted)])

    return Shared(f"buffers, {reads=}", step, problem)


def counted(random: Random, size: Size) -> Shared:
    """In-place additions without a lock, to a whole tensor or to a view of all of it."""
    x, view = weft.zeros(size.width), bool(random.integers(2))

    def step(thread: int, number: int) -> None:
        (x[:] if view else x).add_(1.0)

    wanted = [float(size.threads * size.steps)] * size.width
    return Shared(f"a counter, {view=}", step, lambda: _expected("a counter", x.tolist(), wanted))


WRITES: dict[str, Callable[[Any, int], object]] = {
    "item": lambda x, i: x.__setitem__(i, i + 1.0),
    "view": lambda x, i: x[i : i + 1].add_(i + 1.0),
    "view of a view": lambda x, i: x.view(-1, 1)[i:].t()[:, 0].copy_(weft.tensor([i + 1.0])),
    "index_add_": lambda x, i: x.index_add_(0, weft.tensor([i]), weft.tensor([i + 1.0])),
    "scatter_": lambda x, i: x.scatter_(0, weft.tensor([i]), i + 1.0),
    "mask": lambda x, i: x.__setitem__(weft.arange(len(x)) == i, i + 1.0),
}


def divided(random: Random, size: Size) -> Shared:
    """Elements of one tensor, each written by one thread."""
    count = size.threads * size.steps
    x, names = weft.zeros(count), [str(name) for name in random.choice(list(WRITES), count)]

    def step(thread: int, number: int) -> None:
        place = number * size.threads + thread
        WRITES[names[place]](x, place)

    def problem() -> str:
        return _expected(f"elements, by {names}", x.tolist(), np.arange(1.0, count + 1))

    return Shared("elements", step, problem)


def watched(random: Random, size: Size) -> Shared:
    """The first thread trains, the others see values that it had, in their order."""
    p, used = nn.Parameter(weft.zeros(size.width)), bool(random.integers(2))
    optimizer = optim.SGD([p], 1.0)
    seen: list[list[Any]] = [[] for _ in range(size.threads)]

    def step(thread: int, number: int) -> None:
        if thread:
            value = (p * 2).sum() / (-2 * size.width) if used else p.detach() * -1
            seen[thread].append(np.unique(value.tolist()).tolist())
            return
        optimizer.zero_grad()
        p.sum().backward()
        optimizer.step()

    def problem() -> str:
        for values in seen:
            known = [len(v) == 1 and v[0] in range(size.steps + 1) for v in values]
            if not all(known) or sorted(values) != values:
                return f"values while another thread trains, {used=}: {values}"
        return _expected("trained", p.tolist(), [-float(size.steps)] * size.width)

    return Shared(f"an evaluation, {used=}", step, problem)


KEPT: dict[int, Any] = {}


class Cycle:
    """Part of a garbage cycle, whose end reads a value."""

    def __init__(self, name: str, made: Any, seen: list[Any]) -> None:
        self.me, self.name, self.made, self.seen = self, name, made, seen

    def __del__(self) -> None:
        self.seen.append((self.name, ENDS.get(self.name, weft.Tensor.tolist)(self.made)))


def _slope(loss: Any) -> Any:
    """A backward pass in the finalizer."""
    loss.backward()
    p = KEPT.pop(id(loss))
    return p.grad.tolist()


def _gradient() -> Any:
    """A pending gradient."""
    p = nn.Parameter(weft.ones(3))
    (p * 2).sum().backward()
    return p.grad


def _loss() -> Any:
    p = nn.Parameter(weft.ones(3))
    loss = (p * 2).sum()
    KEPT[id(loss)] = p  # not garbage itself: gradients go to tensors that are in use
    return loss


MADE: dict[str, tuple[Callable[[], Any], Any]] = {
    "result": (lambda: weft.ones(3) * 2, [2.0] * 3),
    "view": (lambda: (weft.ones(3) * 2).reshape(3, 1)[1:].t(), [[2.0] * 2]),
    "sort": (lambda: weft.sort(weft.ones(3) * 2 - weft.arange(3.0)).indices, [2, 1, 0]),
    "gradient": (_gradient, [2.0] * 3),
    "backward": (_loss, [2.0] * 3),
    "changed": (lambda: weft.zeros(3).add_(1.0), [1.0, 4.0, 4.0]),
}


def _changed(x: Any) -> Any:
    view = x[1:]
    view.add_(1.0).mul_(2.0)
    return x.tolist()


ENDS: dict[str, Callable[[Any], Any]] = {"backward": _slope, "changed": _changed}


@dataclass(frozen=True)
class Finalizers:
    """Values of garbage cycles, read by their finalizers in whatever thread collects them."""

    names: list[str]
    collects: int
    seen: list[Any] = field(default_factory=list)

    def step(self, thread: int, number: int) -> None:
        """Leave a cycle behind."""
        name = self.names[(thread + 3 * number) % len(self.names)]
        Cycle(name, MADE[name][0](), self.seen)
        if thread == self.collects:
            gc.collect()

    def problem(self, count: int) -> str:
        """A wrong or missing value."""
        gc.collect()
        wrong = [f"{name}: {value}" for name, value in self.seen if value != MADE[name][1]]
        if len(self.seen) != count:
            wrong.append(f"{len(self.seen)} of {count} finalizers ended")
        return ", ".join(wrong[:3])


def finalized(random: Random, size: Size) -> Shared:
    """Finalizers that read pending values."""
    names = [str(name) for name in random.choice(list(MADE), 5)]
    made = Finalizers(names, int(random.integers(size.threads)))
    about = f"finalizers of {names}"
    return Shared(about, made.step, lambda: made.problem(size.threads * size.steps))


KINDS = (accumulated, trained, buffers, counted, divided, watched, finalized)
