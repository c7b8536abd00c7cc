"""Decoding symbol by symbol in one loop of the program, with what was computed before in a cache.

The prompt goes through the same loop, so that one program serves prompts and results of any length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import weft.eager.functions.api as wf
from weft.eager.functions.api import Tensor
from weft.errors import ArgumentError
from weft.func.control.loop import while_loop
from weft.func.jit import jit
from weft.ir.dtype import bool_, int32, int64
from weft.ops.base import at_user_line

Cache = Sequence[Tensor]
Step = Callable[[Tensor, Tensor, Cache], tuple[Tensor, Cache]]
"""`logits, cache = step(symbols, position, cache)`: (N,) int64 and an int32 to (N, vocabulary)."""
NEVER: Final = -1


@dataclass(frozen=True)
class Sampling:
    """How the next symbol is drawn.

    Args:
        temperature: divides logits; 0 takes the most likely symbol.
        top_k: only so many of the most likely symbols are drawn.
        top_p: only the most likely symbols are drawn that together have this probability (Holtzman
            et al., "The Curious Case of Neural Text Degeneration", 2019).
        stop: the symbol after which a row ends; the rest of it is this symbol, too.

    Raises:
        ArgumentError: a negative temperature, no symbols, or a probability that is none.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    stop: int | None = None

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

    def draw(self, logits: Tensor) -> Tensor:
        """(N, vocabulary) to (N,)."""
        if self.temperature == 0:
            return logits.argmax(-1)
        logits = logits / self.temperature
        if self.top_k is not None and self.top_k < logits.shape[-1]:
            least = wf.topk(logits, self.top_k)[0][:, -1:]
            logits = wf.where(logits < least, float("-inf"), logits)
        if self.top_p is not None and self.top_p < 1:
            logits = _likely(logits, self.top_p)
        # The largest of logits plus Gumbel noise is drawn with the probabilities of their softmax.
        noise = wf.rand(*logits.shape).clamp(1e-20, 1.0)
        return (logits - wf.log(-wf.log(noise))).argmax(-1)


def _likely(logits: Tensor, share: float) -> Tensor:
    """Without symbols beyond the most likely ones that have this share of the probability."""
    ordered = wf.sort(logits, -1, descending=True)[0]
    chances = wf.softmax(ordered, -1)
    before = wf.cumsum(chances, -1) - chances
    least = wf.where(before < share, ordered, float("inf")).amin(-1, keepdim=True)
    return wf.where(logits < least, float("-inf"), logits)


def decode(
    step: Step, ids: Tensor, room: int, count: int, cache: Cache, sampling: Sampling,
    stream: Callable[[Tensor], Any] | None = None,
) -> Tensor:  # fmt: skip
    """`ids` (N, L) with up to `count` drawn symbols after them, in at most `room` positions.

    Args:
        step: computes the logits of what follows a symbol.
        cache: what `step` hands on, at first.
        stream: called with every drawn column (N,) as soon as it is there.
    """
    n, length = ids.shape
    end = min(length + count, room)
    if end <= length:
        return ids
    places = wf.arange(room)
    seen = wf.zeros((n, room), dtype=int64)
    seen[:, :length] = ids
    now = wf.tensor(0, dtype=int32)
    state: Any = (seen, now, wf.zeros(n, dtype=bool_), tuple(cache))
    prompt = wf.tensor(length, dtype=int32)
    stop = NEVER if sampling.stop is None else sampling.stop

    def turn(state: Any) -> Any:
        seen, now, ended, limit, prompt, cache = state
        symbols = wf.where(places == now, seen, 0).sum(1)
        logits, cache = step(symbols, now, cache)
        behind = places == now + 1
        given = wf.where(behind, seen, 0).sum(1)
        drawn = wf.where(ended, max(stop, 0), sampling.draw(logits))
        new = wf.where(now + 1 < prompt, given, drawn)
        ended = ended | ((new == stop) & (now + 1 >= prompt))
        seen = wf.where(behind, wf.unsqueeze(new, 1), seen)
        return seen, now + 1, ended, limit, prompt, tuple(cache)

    def goes_on(state: Any) -> Tensor:
        _, now, ended, limit, _, _ = state
        return (now + 1 < limit) & ~ended.all()

    def run(state: Any) -> Any:
        return while_loop(goes_on, turn, state)

    again = jit(run)  # traced once, for however many symbols are streamed
    done = 1
    for limit in range(length + 1, end + 1) if stream else (end,):
        held = wf.tensor(limit, dtype=int32)
        seen, now, ended, *_, cache = (again if stream else run)(
            (*state[:3], held, prompt, state[3])
        )
        state = (seen, now, ended, cache)
        done = int(now.item()) + 1
        if stream and done == limit:
            stream(seen[:, limit - 1])
        if done < limit:
            break
    return state[0][:, :done]
