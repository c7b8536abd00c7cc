"""Text token by token in one loop of the program, with what was computed before in a cache.

The loop is one program for results of any length. A prompt is computed at once before it, filled
up to one of a few lengths, so that few programs serve prompts of any length.

>>> import weft as wf
>>> from weft import models, nn
>>> class Counter(nn.Module):  # the next token is the one before it and the sum of all, modulo 5
...     def step(self, tokens, position, cache):
...         (total,) = cache
...         total = (total + tokens) % 5
...         return nn.functional.one_hot((tokens + total) % 5, 5).float(), (total,)
>>> ids = wf.tensor([[1, 2]])
>>> models.generate(Counter(), ids, 3, cache=[wf.zeros(1, dtype=wf.int64)], temperature=0).tolist()
[[1, 2, 0, 3, 4]]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

import numpy as np

import weft.eager.functions.api as wf
from weft.eager.functions.api import Tensor
from weft.eager.functions.random.generator import next_counter, uniform_node
from weft.eager.tensor.generator import Generator
from weft.errors import ArgumentError, ShapeError
from weft.func.control.loop import while_loop
from weft.func.jit import jit
from weft.ir.dtype import bool_, int32, int64
from weft.ops.base import at_user_line

Cache = Sequence[Tensor]
Stream = Callable[[Tensor], Any]
_LEAST: Final = 32
"""Prompts are filled up to this length, or to it times a power of two."""
_APART: Final = np.uint64(0x9E3779B97F4A7C15)
"""How far apart random numbers of two tokens begin: 2**64 over the golden ratio."""


class Decodable(Protocol):
    """What computes one token at a time: `generate` and `beam_search` take any module that does.

    Its cache is a sequence of tensors (N, ...) of any number of kinds, which keep their shapes:
    keys and values of all positions, the states of recurrent layers. What is the same for all
    tokens, such as an encoder's outputs, it holds itself.
    """

    def step(self, tokens: Tensor, position: Tensor, cache: Cache) -> tuple[Tensor, Cache]:
        """Logits (N, vocabulary) of what follows the tokens, and the cache with them.

        Args:
            tokens: (N,), int64.
            position: where they are, an int32 scalar.
            cache: of the positions before.
        """
        ...


@runtime_checkable
class Prefilled(Decodable, Protocol):
    """What can also compute a prompt at once; others take it token by token."""

    def begin(self, tokens: Tensor, cache: Cache) -> Cache:
        """The cache of tokens (N, L) at the first positions.

        It may be computed with other tokens behind a prompt, whose cache `step` must not see.
        """
        ...


@dataclass(frozen=True)
class Sampling:
    """How the next token is drawn.

    Args:
        temperature: divides logits; 0 takes the most likely token.
        top_k: only so many of the most likely tokens are drawn.
        top_p: only the most likely tokens are drawn that together have this probability (Holtzman
            et al., "The Curious Case of Neural Text Degeneration", 2019).
        stop: the tokens after which a row ends; the rest of it is the one that it ended with.

    Raises:
        ArgumentError: a negative temperature, no tokens, or a probability that is none.
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


def ends(tokens: Tensor, stop: Sequence[int]) -> Tensor:
    """Where tokens are among those that end a text."""
    found = wf.zeros_like(tokens, dtype=bool_)
    for one in stop:
        found = found | (tokens == one)
    return found


def stops(stop: int | Sequence[int] | None) -> tuple[int, ...]:
    """The tokens that end a text, as a tuple."""
    if stop is None:
        return ()
    return (stop,) if isinstance(stop, int) else tuple(stop)


def check_request(what: str, ids: Tensor, count: int) -> None:
    """Refuse prompts and counts that are none.

    Raises:
        ShapeError: no token to begin with.
        ArgumentError: a negative count.
    """
    if ids.ndim != 2 or ids.shape[1] == 0:
        raise ShapeError(
            f"{what}: ids: expected tokens (N, L) with L of 1 or more, got {tuple(ids.shape)}"
            f"{at_user_line()}"
        )
    if count < 0:
        raise ArgumentError(f"{what}: count: expected 0 or more, got {count}{at_user_line()}")


def first_counter(generator: Generator | None) -> Tensor:
    """Where the random numbers of the first token begin; see `next_token`."""
    return next_counter(generator)


def next_token(counter: Tensor) -> Tensor:
    """Where those of the token after it begin: far from them, and from those of other calls."""
    return counter + wf.tensor(_APART)


def _likely(logits: Tensor, share: float) -> Tensor:
    """Without tokens beyond the most likely ones that have this share of the probability."""
    ordered = wf.sort(logits, -1, descending=True)[0]
    chances = wf.softmax(ordered, -1)
    before = wf.cumsum(chances, -1) - chances
    least = wf.where(before < share, ordered, float("inf")).amin(-1, keepdim=True)
    return wf.where(logits < least, float("-inf"), logits)


class Text(NamedTuple):
    """What is there between two tokens, or two calls of `decode`.

    Attributes:
        ids: (N, positions), 0 behind the last token.
        now: how many positions the cache has, an int32.
        ended: (N,) which rows have ended.
        counter: where the random numbers of the next token begin.
    """

    ids: Tensor
    now: Tensor
    ended: Tensor
    counter: Tensor


def generate(
    model: Decodable,
    ids: Tensor,
    count: int,
    *,
    cache: Cache,
    room: int | None = None,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    stop: int | Sequence[int] | None = None,
    stream: Stream | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """`ids` (N, L) with up to `count` drawn tokens after them, by any module that takes a cache.

    Args:
        model: what computes a token: see `weft.models.decoding.Decodable`.
        cache: of no position yet.
        room: how many positions there may be; as many as are asked for by default. The same room
            is the same program.
        temperature: divides logits; 0 takes the most likely token.
        top_k: only so many of the most likely tokens are drawn.
        top_p: only the most likely tokens that together have this probability are drawn.
        stop: a row ends with this token, or one of these; it ends when all rows have.
        stream: called with every drawn column (N,) as soon as it is there.
        generator: of the random numbers.

    Raises:
        ArgumentError: a negative temperature or count, no tokens to draw from, or a probability
            that is none.
        ShapeError: no token to begin with.
    """
    check_request("generate", ids, count)
    sampling = Sampling(temperature, top_k, top_p, stops(stop))
    most = ids.shape[1] + count if room is None else room
    with wf.no_grad():
        return decode(model, ids, most, count, cache, sampling, first_counter(generator), stream)[0]


def decode(
    model: Decodable, ids: Tensor, room: int, count: int, cache: Cache, sampling: Sampling,
    counter: Tensor, stream: Stream | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """`ids` (N, L) with up to `count` drawn tokens after them, in at most `room` positions.

    Args:
        cache: of no position yet.
        counter: where random numbers begin.
        stream: called with every drawn column (N,) as soon as it is there.

    Returns:
        The tokens, and where the random numbers of the next one begin.
    """
    n, length = ids.shape
    end = min(length + count, room)
    if end <= length:
        return ids, counter
    seen, now, cache = prepared(model, ids, room, cache)
    text = Text(seen, wf.tensor(now, dtype=int32), wf.zeros(n, dtype=bool_), counter)
    given = wf.tensor(length, dtype=int32)
    run = _loop(model, sampling, room, given)
    again = jit(run) if stream else run  # traced once, for however many tokens are streamed
    done = length
    for limit in range(length + 1, end + 1) if stream else (end,):
        text, cache = again(text, tuple(cache), wf.tensor(limit, dtype=int32))
        done = int(text.now.item()) + 1
        if stream and done == limit:
            stream(text.ids[:, limit - 1])
        if done < limit:
            break
    return text.ids[:, :done], text.counter


def prepared(model: Decodable, ids: Tensor, room: int, cache: Cache) -> tuple[Tensor, int, Cache]:
    """Tokens (N, room), of which the first are `ids`; how many are in the cache; the cache.

    All but the last token of a prompt are, if the model can compute them at once.
    """
    n, length = ids.shape
    seen = wf.zeros((n, room), dtype=int64)
    seen[:, :length] = ids
    if length == 1 or not isinstance(model, Prefilled):
        return seen, 0, cache
    return seen, length - 1, model.begin(seen[:, : _filled(length - 1, room)], cache)


def _filled(length: int, room: int) -> int:
    """The length that a prompt is filled up to."""
    filled = _LEAST
    while filled < length:
        filled *= 2
    return min(filled, room)


def _loop(
    model: Decodable, sampling: Sampling, room: int, given: Tensor
) -> Callable[..., Any]:  # fmt: skip
    """A function of text, cache and how many tokens there shall be, to text and cache.

    Args:
        given: how many tokens the prompt has.
    """
    places = wf.arange(room)

    def body(state: Any) -> Any:
        text, cache, limit = state
        seen, now, ended, counter = text
        tokens = wf.where(places == now, seen, 0).sum(1)
        logits, cache = model.step(tokens, now, cache)
        new = wf.where(ended, tokens, sampling.draw(logits, counter))
        seen = wf.where((places == now + 1) & (places >= given), wf.unsqueeze(new, 1), seen)
        ended = ended | (ends(new, sampling.stop) & (now + 1 >= given))
        text = Text(seen, now + 1, ended, next_token(counter))
        return text, tuple(cache), limit

    def goes_on(state: Any) -> Tensor:
        text, _, limit = state
        return (text.now + 1 < limit) & ~text.ended.all()

    def run(text: Text, cache: Cache, limit: Tensor) -> Any:
        return while_loop(goes_on, body, (text, cache, limit))[:2]

    return run
