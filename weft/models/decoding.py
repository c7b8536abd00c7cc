"""Decoding symbol by symbol in one loop of the program, with what was computed before in a cache.

The loop is one program for results of any length. A prompt is computed at once before it, filled
up to one of a few lengths, so that few programs serve prompts of any length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

import weft.eager.functions.api as wf
from weft.eager.functions.api import Tensor
from weft.eager.functions.random.generator import next_counter, uniform_node
from weft.eager.tensor.generator import Generator
from weft.errors import ArgumentError
from weft.func.control.loop import while_loop
from weft.func.jit import jit
from weft.ir.dtype import bool_, int32, int64
from weft.ops.base import at_user_line

Cache = Sequence[Tensor]
Step = Callable[[Tensor, Tensor, Cache], tuple[Tensor, Cache]]
"""`logits, cache = step(symbols, position, cache)`: (N,) int64 and an int32 to (N, vocabulary)."""
Begin = Callable[[Tensor, Cache], Cache]
"""`cache = begin(symbols, cache)`: with what symbols (N, L) at the first positions leave there."""
Stream = Callable[[Tensor], Any]
_LEAST: Final = 32
"""Prompts are filled up to this length, or to it times a power of two."""
_APART: Final = np.uint64(0x9E3779B97F4A7C15)
"""How far apart random numbers of two symbols begin: 2**64 over the golden ratio."""


@dataclass(frozen=True)
class Sampling:
    """How the next symbol is drawn.

    Args:
        temperature: divides logits; 0 takes the most likely symbol.
        top_k: only so many of the most likely symbols are drawn.
        top_p: only the most likely symbols are drawn that together have this probability (Holtzman
            et al., "The Curious Case of Neural Text Degeneration", 2019).
        stop: the symbols after which a row ends; the rest of it is the one that it ended with.

    Raises:
        ArgumentError: a negative temperature, no symbols, or a probability that is none.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    stop: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name, fine, wanted in (
            ("temperature", self.temperature >= 0, "0 or more"),
            ("top_k", self.top_k is None or self.top_k > 0, "a positive integer"),
            ("top_p", self.top_p is None or 0 < self.top_p <= 1, "a number in (0, 1]"),
        ):
            if not fine:
                got = getattr(self, name)
                raise ArgumentError(
                    f"generate: {name}: expected {wanted}, got {got}{at_user_line()}"
                )

    def draw(self, logits: Tensor, counter: Tensor) -> Tensor:
        """(N, vocabulary) to (N,).

        Args:
            counter: where the random numbers begin, as `first_counter` gives it.
        """
        if self.temperature == 0:
            return logits.argmax(-1)
        logits = logits / self.temperature
        if self.top_k is not None and self.top_k < logits.shape[-1]:
            least = wf.topk(logits, self.top_k)[0][:, -1:]
            logits = wf.where(logits < least, float("-inf"), logits)
        if self.top_p is not None and self.top_p < 1:
            logits = _likely(logits, self.top_p)
        # The largest of logits plus Gumbel noise is drawn with the probabilities of their softmax.
        noise = uniform_node(counter, None, None, shape=tuple(logits.shape), dtype=logits.dtype)
        return (logits - wf.log(-wf.log(noise.clamp(1e-20, 1.0)))).argmax(-1)


def ends(symbols: Tensor, stop: Sequence[int]) -> Tensor:
    """Where symbols are among those that end a text."""
    found = wf.zeros_like(symbols, dtype=bool_)
    for one in stop:
        found = found | (symbols == one)
    return found


def first_counter(generator: Generator | None) -> Tensor:
    """Where the random numbers of the first symbol begin; see `next_symbol`."""
    return next_counter(generator)


def next_symbol(counter: Tensor) -> Tensor:
    """Where those of the symbol after it begin: far from them, and from those of other calls."""
    return counter + wf.tensor(_APART)


def _likely(logits: Tensor, share: float) -> Tensor:
    """Without symbols beyond the most likely ones that have this share of the probability."""
    ordered = wf.sort(logits, -1, descending=True)[0]
    chances = wf.softmax(ordered, -1)
    before = wf.cumsum(chances, -1) - chances
    least = wf.where(before < share, ordered, float("inf")).amin(-1, keepdim=True)
    return wf.where(logits < least, float("-inf"), logits)


class Text(NamedTuple):
    """What is there between two symbols, or two calls of `decode`.

    Attributes:
        ids: (N, positions), 0 behind the last symbol.
        now: how many positions the cache has, an int32.
        ended: (N,) which rows have ended.
        counter: where the random numbers of the next symbol begin.
    """

    ids: Tensor
    now: Tensor
    ended: Tensor
    counter: Tensor


def decode(
    step: Step, begin: Begin, ids: Tensor, room: int, count: int, cache: Cache, sampling: Sampling,
    counter: Tensor, stream: Stream | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """`ids` (N, L) with up to `count` drawn symbols after them, in at most `room` positions.

    Args:
        step: computes the logits of what follows a symbol.
        begin: computes the cache of a prompt.
        cache: what `step` hands on, at first.
        counter: where random numbers begin.
        stream: called with every drawn column (N,) as soon as it is there.

    Returns:
        The symbols, and where the random numbers of the next one begin.
    """
    n, length = ids.shape
    end = min(length + count, room)
    if end <= length:
        return ids, counter
    seen, cache = prepared(begin, ids, room, cache)
    text = Text(seen, wf.tensor(length - 1, dtype=int32), wf.zeros(n, dtype=bool_), counter)
    run = _loop(step, sampling, room)
    again = jit(run) if stream else run  # traced once, for however many symbols are streamed
    done = length
    for limit in range(length + 1, end + 1) if stream else (end,):
        text, cache = again(text, tuple(cache), wf.tensor(limit, dtype=int32))
        done = int(text.now.item()) + 1
        if stream and done == limit:
            stream(text.ids[:, limit - 1])
        if done < limit:
            break
    return text.ids[:, :done], text.counter


def prepared(begin: Begin, ids: Tensor, room: int, cache: Cache) -> tuple[Tensor, Cache]:
    """Symbols (N, room), of which the first are `ids`; the cache of all of these but the last."""
    n, length = ids.shape
    seen = wf.zeros((n, room), dtype=int64)
    seen[:, :length] = ids
    if length == 1:
        return seen, cache
    return seen, begin(seen[:, : _filled(length - 1, room)], cache)


def _filled(length: int, room: int) -> int:
    """The length that a prompt is filled up to."""
    filled = _LEAST
    while filled < length:
        filled *= 2
    return min(filled, room)


def _loop(step: Step, sampling: Sampling, room: int) -> Callable[..., Any]:
    """A function of text, cache and how many symbols there shall be, to text and cache."""
    places = wf.arange(room)

    def turn(state: Any) -> Any:
        text, cache, limit = state
        seen, now, ended, counter = text
        symbols = wf.where(places == now, seen, 0).sum(1)
        logits, cache = step(symbols, now, cache)
        new = wf.where(ended, symbols, sampling.draw(logits, counter))
        seen = wf.where(places == now + 1, wf.unsqueeze(new, 1), seen)
        text = Text(seen, now + 1, ended | ends(new, sampling.stop), next_symbol(counter))
        return text, tuple(cache), limit

    def goes_on(state: Any) -> Tensor:
        text, _, limit = state
        return (text.now + 1 < limit) & ~text.ended.all()

    def run(text: Text, cache: Cache, limit: Tensor) -> Any:
        return while_loop(goes_on, turn, (text, cache, limit))[:2]

    return run
