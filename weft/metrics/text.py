"""Metrics of text: perplexity, BLEU and ROUGE."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

import numpy as np

from weft.eager.tensor.dispatch import recorded
from weft.errors import ArgumentError, ShapeError
from weft.ir.dtype import float64, int64
from weft.metrics.metric import Array, Merge, Metric, Totals, given
from weft.ops.loss.classification import cross_entropy
from weft.ops.metric.text import bleu, pieces, rouge_l, rouge_lsum, rouge_n

__all__ = ["BLEU", "ROUGE", "Perplexity"]

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
        found, count = np.zeros((2, self.n_gram), np.int64)
        lengths = np.zeros(2, np.int64)
        for text, references in zip(preds, target, strict=True):
            self._count(_tokens(text), [_tokens(r) for r in references], found, count, lengths)
        return {"found": found, "pieces": count, "lengths": lengths}

    def _count(
        self, text: list[Any], references: list[list[Any]], found: Array, count: Array,
        lengths: Array,
    ) -> None:  # fmt: skip
        """Add one translation; of references equally near in length, the shorter counts."""
        if not references:
            raise ArgumentError.here("BLEU: expected references of every translation, got none")
        nearest = min((abs(len(r) - len(text)), len(r)) for r in references)[1]
        lengths += (len(text), nearest)
        for i in range(self.n_gram):
            own = pieces(text, i + 1)
            most: Counter[tuple[Any, ...]] = Counter()
            for reference in references:
                most |= pieces(reference, i + 1)
            found[i] += (own & most).total()
            count[i] += own.total()

    def value(self, totals: Totals) -> float:
        """From 0 to 1."""
        found, count = totals["found"].astype(float), totals["pieces"].astype(float)
        own, reference = totals["lengths"].tolist()
        return bleu(found, count, own, reference, smooth=self.smooth)


def _tokens(text: Tokens) -> list[Any]:
    return text.split() if isinstance(text, str) else list(text)


class ROUGE(Metric):
    """Overlaps of texts with true ones: precision, recall and F1 by name, such as `rouge1_recall`.

    Args:
        keys: of `"rouge1"` to `"rouge9"`, `"rougeL"` and `"rougeLsum"`.
        best: of several true texts, whether the nearest one counts, else the mean.
        normalizer: changes a text; by default letters are lower, and others spaces.
        tokenizer: gives the words of a text; by default those between spaces.
        sentences: gives the sentences of a text, for `"rougeLsum"`.
        stem: gives the stem of a word.
    """

    merges: ClassVar[Mapping[str, Merge]] = {"total": "sum", "count": "sum"}

    def __init__(
        self, keys: Sequence[str], best: bool = True,
        normalizer: Callable[[str], str] | None = None,
        tokenizer: Callable[[str], Sequence[str]] | None = None,
        sentences: Callable[[str], Sequence[str]] = str.splitlines,
        stem: Callable[[str], str] | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        known = [*[f"rouge{n}" for n in range(1, 10)], "rougeL", "rougeLsum"]
        if odd := sorted(set(keys).difference(known)):
            raise ArgumentError.here(f"ROUGE: expected keys of {known}, got {odd}")
        self.keys, self._best, self._sentences, self._stem = list(keys), best, sentences, stem
        self._normalizer = normalizer or (lambda x: re.sub(r"[^a-z0-9]+", " ", x.lower()))
        self._tokenizer = tokenizer or str.split

    def part(self, preds: Any, target: Any) -> dict[str, Any]:
        """Texts, and for each a true one or a list of them."""
        texts: list[str] = [preds] if isinstance(preds, str) else list(preds)
        given: list[Any] = [target] if isinstance(target, str) else list(target)
        if len(texts) == 1 and len(given) > 1:
            given = [given]
        rows = [[x] if isinstance(x, str) else list(x) for x in given]
        if len(texts) != len(rows):
            raise ShapeError.here(f"ROUGE: expected true texts of each of {len(texts)}, got {rows}")
        found = [self._nearest(text, true) for text, true in zip(texts, rows, strict=True)]
        return {"total": np.sum(found, 0), "count": len(found)}

    def _words(self, text: str) -> list[str]:
        words = self._tokenizer(self._normalizer(text))
        if self._stem is not None:
            words = [self._stem(word) if len(word) > 3 else word for word in words]
        return [word for word in words if word]

    def _nearest(self, text: str, true: Sequence[str]) -> Array:
        """The figures of a text, (keys, 3)."""
        each = np.array([self._figures(text, other) for other in true])
        if not self._best:
            return each.mean(0)
        return each[each[:, :, 2].argmax(0), np.arange(len(self.keys))]

    def _figures(self, a: str, b: str) -> list[tuple[float, float, float]]:
        own, true = self._words(a), self._words(b)
        found: list[tuple[float, float, float]] = []
        for key in self.keys:
            if key == "rougeLsum":
                found.append(rouge_lsum(*[[*map(self._words, self._sentences(x))] for x in (a, b)]))
            else:
                n = key.removeprefix("rouge")
                found.append(rouge_l(own, true) if n == "L" else rouge_n(own, true, int(n)))
        return found

    def value(self, totals: Totals) -> dict[str, float]:
        """The means, from 0 to 1."""
        means = totals["total"] / totals["count"]
        names = ("precision", "recall", "fmeasure")
        return {
            f"{key}_{name}": float(x)
            for key, row in zip(self.keys, means, strict=True)
            for name, x in zip(names, row, strict=True)
        }
