"""Beam search in one compiled loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import weft.eager.functions.api as wf
from weft.eager.functions.api import Tensor
from weft.errors import ArgumentError
from weft.func.control.loop import while_loop
from weft.ir.dtype import bool_, float32, float64, int32, int64
from weft.models.decoding import Cache, Decodable, check_request, ends, prepared, stops


class Search(NamedTuple):
    """Beam search as in Wu et al., "Google's Neural Machine Translation System", 2016, section 7.

    Args:
        beams: the number of candidates for each row.
        length_penalty: log probabilities of n tokens are divided by ((5 + n) / 6) to this power;
            0 prefers short texts.
        stop: tokens that end a text; the rest of it repeats the one that ended it.
    """

    beams: int
    length_penalty: float
    stop: tuple[int, ...]

    def check(self) -> None:
        """Check the options.

        Raises:
            ArgumentError: there are no beams.
        """
        if self.beams < 1:
            raise ArgumentError.here(f"beam_search: beams: expected 1 or more, got {self.beams}")

    def normalized(self, sums: Tensor, lengths: Tensor) -> Tensor:
        """Length-normalized log probabilities."""
        return sums / ((lengths.to(sums.dtype) + 5) / 6) ** self.length_penalty


class Beams(NamedTuple):
    """The state of the search; the best candidates come first.

    Attributes:
        ids: (N, beams, positions), 0 after the last token.
        now: an int32, the number of cached positions.
        sums: (N, beams), log probabilities.
        lengths: (N, beams), the number of added tokens, including the one that ends a text.
        ended: (N, beams), which candidates have ended.
    """

    ids: Tensor
    now: Tensor
    sums: Tensor
    lengths: Tensor
    ended: Tensor


def beam_search(
    model: Decodable, ids: Tensor, count: int, *, cache: Cache, room: int | None = None,
    beams: int = 4, length_penalty: float = 1.0, stop: int | Sequence[int] | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The most likely texts of at most `count` tokens after `ids` (N, L), found in one loop.

    Args:
        model: computes a token: see `weft.models.decoding.Decodable`. Its own state is for N *
            `beams` rows, the candidates of a text next to each other; `begin` gets N rows.
        cache: an empty cache for N rows.
        room: the maximum number of positions; by default as many as needed.
        beams: the number of candidates for each row.
        length_penalty: log probabilities of n tokens are divided by ((5 + n) / 6) to this power.
        stop: a token, or several, that ends a text.

    Returns:
        Texts (N, beams, L + count or less), the best first, and the length-normalized log
        probabilities (N, beams) of the added tokens.

    Raises:
        ArgumentError: there are no beams, or the count is negative.
        ShapeError: the prompt is empty.
    """
    check_request("beam_search", ids, count)
    search = Search(beams, length_penalty, stops(stop))
    search.check()
    with wf.no_grad():
        return _run(
            model, ids, ids.shape[1] + count if room is None else room, count, cache, search
        )


def _run(
    model: Decodable, ids: Tensor, room: int, count: int, cache: Cache, search: Search
) -> tuple[Tensor, Tensor]:
    n, length = ids.shape
    b = search.beams
    seen, now, cache = prepared(model, ids, room, cache)
    given = wf.tensor(length, dtype=int32)
    every = tuple([x.repeat_interleave(b, 0) for x in cache])
    # all candidates start out equal, so only the first one counts
    first = wf.where(wf.arange(b) == 0, 0.0, float("-inf"))
    kinds = [x.dtype for x in cache if x.dtype.is_floating_point]
    state = Beams(
        wf.unsqueeze(seen, 1).repeat(1, b, 1), wf.tensor(now, dtype=int32),
        first.to(_summed(kinds)).repeat(n, 1), wf.zeros((n, b), dtype=int64),
        wf.zeros((n, b), dtype=bool_),
    )  # fmt: skip

    def body(state: tuple[Beams, Cache]) -> Any:
        found, cache = state
        tokens = wf.index_select(found.ids, 2, found.now.view(1)).flatten()
        logits, cache = model.step(tokens, found.now, cache)
        new, parents = _chosen(search, found, tokens.view(n, b), logits.view(n, b, -1))
        prompt = found.now + 1 < given  # the token is part of the prompt
        new = Beams(*[wf.where(prompt, x, y) for x, y in zip(_on(found), new, strict=True)])
        parents = wf.where(prompt, wf.arange(b), parents)
        rows = (parents + wf.arange(n).view(n, 1) * b).flatten()
        return new, tuple([wf.index_select(x, 0, rows) for x in cache])

    def goes_on(state: tuple[Beams, Cache]) -> Tensor:
        return (state[0].now + 1 < length + count) & ~state[0].ended.all()

    found: Beams = while_loop(goes_on, body, (state, every))[0]
    done = int(found.now.item()) + 1
    return found.ids[:, :, :done], search.normalized(found.sums, found.lengths)


def _on(found: Beams) -> Beams:
    """The same candidates, one position later."""
    return found._replace(now=found.now + 1)


def _summed(kinds: Sequence[Any]) -> Any:
    """The element type of log probabilities: sums in 16 bits would round to the same value."""
    return float64 if float64 in kinds else float32


def _chosen(
    search: Search, found: Beams, tokens: Tensor, logits: Tensor
) -> tuple[Beams, Tensor]:  # fmt: skip
    """The best candidates with one more token, and the candidates that they continue."""
    vocabulary = logits.shape[2]
    same = wf.arange(vocabulary) == wf.unsqueeze(tokens, 2)
    repeated = wf.where(same, 0.0, float("-inf"))  # an ended text stays as it is
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
