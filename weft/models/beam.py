"""Beam search in one loop of the program: the likeliest texts of several that are followed."""

from __future__ import annotations

from typing import Any, NamedTuple

import weft.eager.functions.api as wf
from weft.eager.functions.api import Tensor
from weft.errors import ArgumentError
from weft.func.control.loop import while_loop
from weft.ir.dtype import bool_, float32, float64, int32, int64
from weft.models.decoding import Begin, Cache, Step, ends, prepared
from weft.ops.base import at_user_line


class Search(NamedTuple):
    """Beam search as in Wu et al., "Google's Neural Machine Translation System", 2016, section 7.

    Args:
        beams: how many texts of each row are followed.
        length_penalty: log probabilities of n symbols are divided by ((5 + n) / 6) to this power;
            0 prefers short texts.
        stop: the symbols after which a text ends; the rest of it is the one that it ended with.
    """

    beams: int
    length_penalty: float
    stop: tuple[int, ...]

    def check(self) -> None:
        """Refuse what cannot be searched for.

        Raises:
            ArgumentError: less than one beam.
        """
        if self.beams < 1:
            raise ArgumentError(
                f"beam_search: beams: expected 1 or more, got {self.beams}{at_user_line()}"
            )

    def normalized(self, sums: Tensor, lengths: Tensor) -> Tensor:
        """Log probabilities of texts, comparable whatever their lengths."""
        return sums / ((lengths.to(sums.dtype) + 5) / 6) ** self.length_penalty


class Beams(NamedTuple):
    """The texts that are followed, the best first.

    Attributes:
        ids: (N, beams, positions), 0 behind the last symbol.
        now: how many positions the cache has, an int32.
        sums: (N, beams) log probabilities.
        lengths: (N, beams) how many symbols were added, the one that ends a text included.
        ended: (N, beams).
    """

    ids: Tensor
    now: Tensor
    sums: Tensor
    lengths: Tensor
    ended: Tensor


def beam_search(
    step: Step, begin: Begin, ids: Tensor, room: int, count: int, cache: Cache, search: Search
) -> tuple[Tensor, Tensor]:
    """The best texts (N, beams, L + at most `count`), and their normalized log probabilities.

    Args:
        step: as in `weft.models.decoding.decode`, as `begin`, `room` and `cache` are.
    """
    n, length = ids.shape
    b = search.beams
    seen, cache = prepared(begin, ids, room, cache)
    first = wf.where(wf.arange(b) == 0, 0.0, float("-inf"))  # all are the same text as yet
    state = Beams(
        wf.unsqueeze(seen, 1).repeat(1, b, 1), wf.tensor(length - 1, dtype=int32),
        first.to(_summed(cache[0].dtype)).repeat(n, 1), wf.zeros((n, b), dtype=int64),
        wf.zeros((n, b), dtype=bool_),
    )  # fmt: skip
    every = tuple([x.repeat_interleave(b, 0) for x in cache])

    def turn(state: tuple[Beams, Cache]) -> Any:
        found, cache = state
        symbols = wf.index_select(found.ids, 2, found.now.view(1)).flatten()
        logits, cache = step(symbols, found.now, cache)
        new, parents = _chosen(search, found, symbols.view(n, b), logits.view(n, b, -1))
        rows = (parents + wf.arange(n).view(n, 1) * b).flatten()
        return new, tuple([wf.index_select(x, 0, rows) for x in cache])

    def goes_on(state: tuple[Beams, Cache]) -> Tensor:
        return (state[0].now + 1 < length + count) & ~state[0].ended.all()

    found: Beams = while_loop(goes_on, turn, (state, every))[0]
    done = int(found.now.item()) + 1
    return found.ids[:, :, :done], search.normalized(found.sums, found.lengths)


def _summed(dtype: Any) -> Any:
    """The element type of log probabilities: 16 bits could not tell their sums apart."""
    return float64 if dtype == float64 else float32


def _chosen(
    search: Search, found: Beams, symbols: Tensor, logits: Tensor
) -> tuple[Beams, Tensor]:  # fmt: skip
    """The best texts with one more symbol, and which of the texts before they go on with."""
    vocabulary = logits.shape[2]
    same = wf.arange(vocabulary) == wf.unsqueeze(symbols, 2)
    repeated = wf.where(same, 0.0, float("-inf"))  # a text that has ended stays as it is
    chances = wf.log_softmax(logits.to(found.sums.dtype), -1)
    more = wf.where(wf.unsqueeze(found.ended, 2), repeated, chances)
    lengths = found.lengths + ~found.ended
    sums = wf.unsqueeze(found.sums, 2) + more
    scores = search.normalized(sums, wf.unsqueeze(lengths, 2)).flatten(1)
    places = wf.topk(scores, search.beams)[1]
    parents, new = places // vocabulary, places % vocabulary
    ids = wf.gather(found.ids, 1, wf.unsqueeze(parents, 2).expand(found.ids.shape))
    behind = wf.arange(ids.shape[2]) == found.now + 1
    state = Beams(
        wf.where(behind, wf.unsqueeze(new, 2), ids), found.now + 1,
        wf.gather(sums.flatten(1), 1, places), wf.gather(lengths, 1, parents),
        wf.gather(found.ended, 1, parents) | ends(new, search.stop),
    )  # fmt: skip
    return state, parents
