"""Metrics of text: perplexity and BLEU."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final

import numpy as np

from weft.eager.tensor.dispatch import recorded
from weft.errors import ArgumentError, ShapeError
from weft.ir.dtype import float64, int64
from weft.metrics.metric import Array, Merge, Metric, Totals, given
from weft.ops.loss.classification import cross_entropy
from weft.ops.metric.text import bleu

__all__ = ["BLEU", "Perplexity"]

_NONE: Final = -(2**63)  # is no token
_losses = recorded(cross_entropy, differentiable=False)
Tokens = str | Sequence[Any]


class Perplexity(Metric):
    """e to the mean negative log-likelihood of all tokens.

    Args:
        ignore_index: a target value that is not counted, such as padding.

    >>> import weft as wf
    >>> perplexity = Perplexity()
    >>> perplexity.update(wf.zeros(2, 3, 8), wf.ones(2, 3, dtype=wf.int64))
    >>> round(perplexity.compute(), 4)
    8.0
    """

    merges: ClassVar[Mapping[str, Merge]] = {"total": "sum", "count": "sum"}

    def __init__(self, ignore_index: int | None = None) -> None:
        super().__init__()
        self.ignore_index = ignore_index

    def part(self, preds: Any, target: Any) -> dict[str, Any]:
        """Logits (..., V) and tokens (...)."""
        p, t = given(preds), given(target).to(int64)
        if p.shape[:-1] != t.shape or not p.ndim:
            raise ShapeError.here(
                f"Perplexity: expected logits (..., V) for targets {tuple(t.shape)}, got "
                f"{tuple(p.shape)}"
            )
        ignored = _NONE if self.ignore_index is None else self.ignore_index
        losses = _losses(
            p.reshape(-1, p.shape[-1]), t.reshape(-1), None, ignore_index=ignored,
            reduction="none", smoothing=0.0,
        )  # fmt: skip
        return {"total": losses.to(float64).sum(), "count": (t != ignored).sum()}

    def value(self, totals: Totals) -> float:
        """The perplexity; infinite if it overflows, NaN if nothing was counted."""
        if not totals["count"]:
            return math.nan
        with np.errstate(over="ignore"):
            return float(np.exp(totals["total"].item() / totals["count"].item()))


class BLEU(Metric):
    """The BLEU score: how many n-grams of the translations are in the references.

    Counted over the whole corpus, not per sentence. Texts are split at white space; lists of tokens
    are taken as they are.

    Args:
        n_gram: the largest n.
        smooth: add 1 to the counts of n-grams of two and more words.

    Source: Papineni et al., "BLEU: a Method for Automatic Evaluation of Machine Translation", 2002;
    smoothing: Lin and Och, "ORANGE", 2004.

    >>> bleu = BLEU()
    >>> bleu.update(["the cat sat on the mat"], [["a cat sat on the mat", "the cat was there"]])
    >>> round(bleu.compute(), 4)
    0.8034
    """

    merges: ClassVar[Mapping[str, Merge]] = {"found": "sum", "pieces": "sum", "lengths": "sum"}

    def __init__(self, n_gram: int = 4, smooth: bool = False) -> None:
        super().__init__()
        if n_gram < 1:
            raise ArgumentError.here(f"BLEU: expected n_gram from 1 on, got {n_gram}")
        self.n_gram, self.smooth = n_gram, smooth

    def part(self, preds: Sequence[Tokens], target: Sequence[Sequence[Tokens]]) -> dict[str, Any]:
        """Translations, and for each a list of references."""
        if isinstance(preds, str) or len(preds) != len(target):
            raise ShapeError.here(
                f"BLEU: expected a list of references for each of {len(preds)} translations, got "
                f"{len(target)}"
            )
        found, pieces = np.zeros((2, self.n_gram), np.int64)
        lengths = np.zeros(2, np.int64)
        for text, references in zip(preds, target, strict=True):
            self._count(_tokens(text), [_tokens(r) for r in references], found, pieces, lengths)
        return {"found": found, "pieces": pieces, "lengths": lengths}

    def _count(
        self, text: list[Any], references: list[list[Any]], found: Array, pieces: Array,
        lengths: Array,
    ) -> None:  # fmt: skip
        """Add one translation; of references equally near in length, the shorter counts."""
        if not references:
            raise ArgumentError.here("BLEU: expected references of every translation, got none")
        nearest = min((abs(len(r) - len(text)), len(r)) for r in references)[1]
        lengths += (len(text), nearest)
        for i in range(self.n_gram):
            own = _pieces(text, i + 1)
            most: Counter[tuple[Any, ...]] = Counter()
            for reference in references:
                most |= _pieces(reference, i + 1)
            found[i] += (own & most).total()
            pieces[i] += own.total()

    def value(self, totals: Totals) -> float:
        """From 0 to 1."""
        found, pieces = totals["found"].astype(float), totals["pieces"].astype(float)
        own, reference = totals["lengths"].tolist()
        return bleu(found, pieces, own, reference, smooth=self.smooth)


def _tokens(text: Tokens) -> list[Any]:
    return text.split() if isinstance(text, str) else list(text)


def _pieces(tokens: Sequence[Any], length: int) -> Counter[tuple[Any, ...]]:
    rows: Iterable[tuple[Any, ...]] = zip(*[tokens[i:] for i in range(length)], strict=False)
    return Counter(rows)
