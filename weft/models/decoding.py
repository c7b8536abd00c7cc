"""Text generation, token by token in one compiled loop, with a cache of earlier positions.

The loop is one program for results of any length. The prompt is computed at once before it, padded
to one of a few lengths, so that few programs serve prompts of any length.

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

Cache = Sequence[Tensor]
Stream = Callable[[Tensor], Any]
_LEAST: Final = 32
"""Prompts are padded to this length times a power of two."""
_APART: Final = np.uint64(0x9E3779B97F4A7C15)
"""Distance between the random counters of two tokens: 2**64 over the golden ratio."""


class Decodable(Protocol):
    """A module that computes one token at a time: what `generate` and `beam_search` take.

    Its cache is a sequence of tensors (N, ...) of any kinds, which keep their shapes: keys and
    values of all positions, states of recurrent layers. What all tokens share, such as an encoder's
    outputs, the module holds itself.
    """

    def step(self, tokens: Tensor, position: Tensor, cache: Cache) -> tuple[Tensor, Cache]:
        """Logits (N, vocabulary) of the next tokens, and the extended cache.

        Args:
            tokens: (N,), int64.
            position: of the tokens, an int32 scalar.
            cache: of the earlier positions.
        """
        ...


@runtime_checkable
class Prefilled(Decodable, Protocol):
    """A module that can also compute a prompt at once; others get it token by token."""

    def begin(self, tokens: Tensor, cache: Cache) -> Cache:
        """The cache of tokens (N, L) at the first positions.

        The prompt may be padded; `step` must not see the cache of the padding.
        """
        ...


@dataclass(frozen=True)
class Sampling:
    """How the next token is sampled.

    Args:
        temperature: divides logits; 0 picks the most likely token.
        top_k: sample only from the k most likely tokens.
        top_p: sample only from the most likely tokens with this total probability (Holtzman et al.,
            "The Curious Case of Neural Text Degeneration", 2019).
        stop: tokens that end a row; the rest of it repeats the one that ended it.

    Raises:
        ArgumentError: the temperature is negative, `top_k` is not positive, or `top_p` is not in
            (0, 1].
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
                raise ArgumentError.here(f"generate: {name}: expected {wanted}, got {got}")

    def draw(self, logits: Tensor, counter: Tensor) -> Tensor:
        """Sample tokens (N,) from logits (N, vocabulary).

        Args:
            counter: the start of the random numbers, from `first_counter`.
        """
        if self.temperature == 0:
            return logits.argmax(-1)
        logits = logits / self.temperature
        if self.top_k is not None and self.top_k < logits.shape[-1]:
            least = wf.topk(logits, self.top_k)[0][:, -1:]
            logits = wf.where(logits < least, float("-inf"), logits)
        if self.top_p is not None and self.top_p < 1:
            logits = _likely(logits, self.top_p)
        # the Gumbel-max trick: this samples from the softmax of the logits
        noise = uniform_node(counter, shape=tuple(logits.shape), dtype=logits.dtype)
        return (logits - wf.log(-wf.log(noise.clamp(1e-20, 1.0)))).argmax(-1)


def ends(tokens: Tensor, stop: Sequence[int]) -> Tensor:
    """Where tokens are stop tokens."""
    found = wf.zeros_like(tokens, dtype=bool_)
    for one in stop:
        found = found | (tokens == one)
    return found


def stops(stop: int | Sequence[int] | None) -> tuple[int, ...]:
    """The stop tokens as a tuple."""
    if stop is None:
        return ()
    return (stop,) if isinstance(stop, int) else tuple(stop)


def check_request(what: str, ids: Tensor, count: int) -> None:
    """Check the prompt and the count.

    Raises:
        ShapeError: the prompt is empty.
        ArgumentError: the count is negative.
    """
    if ids.ndim != 2 or ids.shape[1] == 0:
        raise ShapeError.here(
            f"{what}: ids: expected tokens (N, L) with L of 1 or more, got {tuple(ids.shape)}"
        )
    if count < 0:
        raise ArgumentError.here(f"{what}: count: expected 0 or more, got {count}")


def first_counter(generator: Generator | None) -> Tensor:
    """The start of the random numbers for the first token; see `next_token`."""
    return next_counter(generator)


def next_token(counter: Tensor) -> Tensor:
    """The start of the next token's random numbers, far from those of others."""
    return counter + wf.tensor(_APART)


def _likely(logits: Tensor, share: float) -> Tensor:
    """Logits with all but the most likely tokens of this total probability masked."""
    ordered = wf.sort(logits, -1, descending=True)[0]
    chances = wf.softmax(ordered, -1)
    before = wf.cumsum(chances, -1) - chances
    least = wf.where(before < share, ordered, float("inf")).amin(-1, keepdim=True)
    return wf.where(logits < least, float("-inf"), logits)


class Text(NamedTuple):
    """The state between two tokens, or between two calls of `decode`.

    Attributes:
        ids: (N, positions), 0 after the last token.
        now: an int32, the number of cached positions.
        ended: (N,), which rows have ended.
        counter: the start of the next token's random numbers.
    """

    ids: Tensor
    now: Tensor
    ended: Tensor
    counter: Tensor


def generate(
    model: Decodable, ids: Tensor, count: int, *, cache: Cache, room: int | None = None,
    temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None,
    stop: int | Sequence[int] | None = None, stream: Stream | None = None,
    generator: Generator | None = None,
) -> Tensor:  # fmt: skip
    """`ids` (N, L) followed by up to `count` sampled tokens.

    Args:
        model: computes a token: see `weft.models.decoding.Decodable`.
        cache: an empty cache.
        room: the maximum number of positions; by default as many as needed. The same room uses the
            same program.
        temperature: divides logits; 0 picks the most likely token.
        top_k: sample only from the k most likely tokens.
        top_p: sample only from the most likely tokens with this total probability.
        stop: a token, or several, that ends a row; generation stops when all rows have ended.
        stream: called with each sampled column (N,) as soon as it is computed.
        generator: the random number generator.

    Raises:
        ArgumentError: `temperature` or `count` is negative, `top_k` is not positive, or `top_p` is
            not in (0, 1].
        ShapeError: the prompt is empty.
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
    """`ids` (N, L) followed by up to `count` sampled tokens, in at most `room` positions.

    Args:
        cache: an empty cache.
        counter: the start of the random numbers.
        stream: called with each sampled column (N,) as soon as it is computed.

    Returns:
        The tokens, and the start of the next one's random numbers.
    """
    n, length = ids.shape
    end = min(length + count, room)
    if end <= length:
        return ids, counter
    seen, now, cache = prepared(model, ids, room, cache)
    text = Text(seen, wf.tensor(now, dtype=int32), wf.zeros(n, dtype=bool_), counter)
    given = wf.tensor(length, dtype=int32)
    run = _loop(model, sampling, room, given)
    again = jit(run) if stream else run  # traced once, for any number of streamed tokens
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
    """Tokens (N, room) that start with `ids`; how many of them are cached; the cache.

    If the model can compute a prompt at once, all but its last token are cached.
    """
    n, length = ids.shape
    seen = wf.zeros((n, room), dtype=int64)
    seen[:, :length] = ids
    if length == 1 or not isinstance(model, Prefilled):
        return seen, 0, cache
    return seen, length - 1, model.begin(seen[:, : _filled(length - 1, room)], cache)


def _filled(length: int, room: int) -> int:
    """The length that a prompt is padded to."""
    filled = _LEAST
    while filled < length:
        filled *= 2
    return min(filled, room)


def _loop(
    model: Decodable, sampling: Sampling, room: int, given: Tensor
) -> Callable[..., Any]:  # fmt: skip
    """A function from text, cache and the final number of tokens to text and cache.

    Args:
        given: the number of tokens in the prompt.
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
