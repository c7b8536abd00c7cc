"""Loops that do not end, and what waits for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import weft
from weft import nn, optim

SPAN = 1 << 20  # what loops count to before they begin again


def _next(s: Any) -> Any:
    return (s + 1) % SPAN


def _plain(n: int, start: Any) -> Any:
    return weft.func.while_loop(lambda s: s != n, _next, start)


def _pair(n: int, start: Any) -> Any:
    def body(state: Any) -> Any:
        return _next(state[0]), state[1] * 0.5 + 1.0

    return weft.func.while_loop(lambda s: s[0] != n, body, (start, weft.ones(3)))[0]


def _nested(n: int, start: Any) -> Any:
    def body(s: Any) -> Any:
        two = weft.func.while_loop(lambda k: k < 2, lambda k: k + 1, s * 0)
        return _next(s + two - 2)

    return weft.func.while_loop(lambda s: s != n, body, start)


def _branch(n: int, start: Any) -> Any:
    return weft.func.cond(start == 0, lambda s: _plain(n, s), lambda s: s, start)


LOOPS: dict[str, Callable[[int, Any], Any]] = {
    "plain": _plain,
    "pair": _pair,
    "nested": _nested,
    "branch": _branch,
    "jit": lambda n, start: weft.func.jit(lambda s: _plain(n, s))(start),
    "jit of a pair": lambda n, start: weft.func.jit(lambda s: _pair(n, s))(start),
}


def factor(name: str, count: int) -> Any:
    """A pending number, 1 after `count` iterations; without end if that is 0."""
    start = weft.tensor(1) - 1
    return LOOPS[name](count or -1, start) / (count or 1)


@dataclass(frozen=True)
class Waiting:
    """What waits for a loop.

    Attributes:
        record: given the loop's result, makes or changes a tensor with it.
        read: the tensor's numbers.
        old: before the change; None where a new tensor is made.
        new: after the change, if the loop's result is 1.
    """

    record: Callable[[Any], object]
    read: Callable[[], list[float]]
    old: list[float] | None
    new: list[float]


def _made() -> Waiting:
    made: list[Any] = []
    return Waiting(lambda f: made.append(f * weft.ones(2)), lambda: made[-1].tolist(), None, [1, 1])


def _changed(change: Callable[[Any, Any], object], new: list[float]) -> Callable[[], Waiting]:
    def begin() -> Waiting:
        x = weft.zeros(2)
        return Waiting(lambda f: change(x, f), x.tolist, [0, 0], new)

    return begin


def _filled(x: Any, f: Any) -> None:
    x[0] = f
    x[1] = x[0] * 3.0


def _stepped(make: Callable[[Any], Any]) -> Callable[[], Waiting]:
    def begin() -> Waiting:
        p = nn.Parameter(weft.ones(2))
        optimizer = make([p])

        def step(f: Any) -> None:
            optimizer.zero_grad()
            (p * f).sum().backward()
            optimizer.step()

        return Waiting(step, p.tolist, [1, 1], [0.5, 0.5])

    return begin


def _normalized() -> Waiting:
    norm = nn.BatchNorm1d(2)
    assert norm.running_mean is not None
    return Waiting(
        lambda f: norm(weft.ones(4, 2) * f), norm.running_mean.tolist, [0, 0], [0.1, 0.1]
    )


KINDS: dict[str, Callable[[], Waiting]] = {
    "a result": _made,
    "in place": _changed(lambda x, f: x.add_(f).mul_(2.0), [2, 2]),
    "a view": _changed(lambda x, f: x[1:].add_(f), [0, 1]),
    "items": _changed(_filled, [1, 3]),
    "SGD": _stepped(lambda p: optim.SGD(p, 0.5, momentum=0.9)),
    "Adam": _stepped(lambda p: optim.Adam(p, 0.5)),
    "statistics": _normalized,
}
