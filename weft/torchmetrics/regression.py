"""Metrics of regression, text and images: classes, and functions of one batch."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from weft import metrics
from weft.eager.functions.api import Tensor, full_like
from weft.errors import ArgumentError
from weft.ir.dtype import float64
from weft.metrics.metric import given
from weft.metrics.regression import Each, Moments, Pairs, Summed
from weft.ops.metric import moment
from weft.ops.metric.text import edit_distance
from weft.ops.warning import warn
from weft.torchmetrics.made import Build, Made, made_class, made_function, snake

__all__ = [
    "BLEUScore",
    "CharErrorRate",
    "ConcordanceCorrCoef",
    "CosineSimilarity",
    "ExplainedVariance",
    "KLDivergence",
    "KendallRankCorrCoef",
    "LogCoshError",
    "MatchErrorRate",
    "MeanAbsoluteError",
    "MeanAbsolutePercentageError",
    "MeanSquaredError",
    "MeanSquaredLogError",
    "PeakSignalNoiseRatio",
    "PearsonCorrCoef",
    "Perplexity",
    "R2Score",
    "ROUGEScore",
    "SpearmanCorrCoef",
    "SymmetricMeanAbsolutePercentageError",
    "WeightedMeanAbsolutePercentageError",
    "WordErrorRate",
    "WordInfoLost",
    "WordInfoPreserved",
]
FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {}
"""The functions by name; `weft.torchmetrics.functional` offers them."""


def _define(name: str, doc: str, build: Build, **order: Any) -> type[Made]:
    """A class; defines the function of one batch as well."""
    low = snake(name)
    FUNCTIONS[low] = made_function(low, __name__, doc, order, build)
    return made_class(name, __name__, doc, order, build)


def _doubles(preds: Any, target: Any) -> tuple[Tensor, Tensor]:
    return given(preds).to(float64), given(target).to(float64)


def _summed(part: Callable[[Tensor, Tensor], Any]) -> Build:
    """The mean of what a function gives for each pair."""

    def each(preds: Any, target: Any) -> tuple[Any, Any]:
        found = part(*_doubles(preds, target))
        return found.sum(), found.numel()

    return lambda: Summed(each)


def _moments(figure: Callable[..., Any]) -> Build:
    return lambda num_outputs=1: Moments(figure, num_outputs)


def _outputs(figure: Callable[..., Any]) -> Build:
    """A figure of each output, averaged as `multioutput` says."""

    def build(multioutput: str = "uniform_average", num_outputs: int = 1, adjusted: int = 0) -> Any:
        if multioutput not in ("uniform_average", "raw_values", "variance_weighted"):
            raise ArgumentError.here(f"expected multioutput 'uniform_average', 'raw_values' or "
                                     f"'variance_weighted', got {multioutput!r}")  # fmt: skip

        def run(*sums: Any) -> Any:
            found = figure(*sums)
            if adjusted:
                n = np.asarray(sums[0])
                found = 1 - (1 - found) * (n - 1) / (n - adjusted - 1)
            if multioutput == "raw_values":
                return found
            spread = moment.spread(sums[0], sums[2], sums[4])
            weights = spread if multioutput == "variance_weighted" else None
            return np.average(found, weights=weights)

        return _Outputs(run)

    return build


class _Outputs(Moments):
    """Moments of each output; their number follows from the first batch."""

    def __init__(self, figure: Callable[..., Any]) -> None:
        super().__init__(figure)

    def part(self, preds: Any, target: Any) -> dict[str, Any]:
        """Predictions and targets (N,) or (N, outputs)."""
        shape = given(preds).shape
        self.outputs = int(shape[-1]) if len(shape) > 1 else 1
        return super().part(preds, target)


def _similarity(preds: Any, target: Any) -> tuple[Any, Any]:
    x, y = _doubles(preds, target)
    found = (x * y).sum(-1) / (x.norm(dim=-1) * y.norm(dim=-1))
    return found.sum(), found.numel()


def _divergence(log_prob: bool) -> Callable[..., Any]:
    def part(p: Any, q: Any) -> tuple[Any, Any]:
        a, b = _doubles(p, q)
        if log_prob:
            found = (a.exp() * (a - b)).sum(-1)
        else:
            a, b = a / a.sum(-1, keepdim=True), b / b.sum(-1, keepdim=True)
            found = (a * (a / b).log()).nan_to_num(0.0).sum(-1)
        return found.sum(), found.numel()

    return part


def _mean_or_sum(reduction: Any, part: Callable[..., Any]) -> Any:
    if reduction not in ("mean", "sum"):
        raise ArgumentError.here(f"expected reduction 'mean' or 'sum', got {reduction!r}")
    return Summed(part, None if reduction == "mean" else lambda total, count: total)


_REDUCTIONS: Final[dict[Any, Callable[[Any], Any]]] = {
    "elementwise_mean": np.mean, "sum": np.sum, "none": np.asarray, None: np.asarray,
}  # fmt: skip


def _noise(data_range: Any, base: float, reduction: str | None, dim: Any, flat: bool = True) -> Any:
    """Peak signal-to-noise ratio, of a known range: of everything, or of parts along `dim`."""
    if data_range is None:
        raise ArgumentError.here("PeakSignalNoiseRatio: expected data_range, got None")
    if reduction not in _REDUCTIONS:
        raise ArgumentError.here(f"PeakSignalNoiseRatio: got unknown reduction {reduction!r}")
    if dim is None and reduction != "elementwise_mean":
        warn(f"PeakSignalNoiseRatio: reduction={reduction!r} has no effect without dim")
    low, high = data_range if isinstance(data_range, tuple) else (0.0, data_range)

    def figure(total: Any, count: Any) -> Any:
        total, count = np.asarray(total), np.asarray(count)
        return _REDUCTIONS[reduction](10 * np.log((high - low) ** 2 * count / total) / np.log(base))

    def part(preds: Any, target: Any) -> tuple[Any, Any]:
        x, y = _doubles(preds, target)
        if isinstance(data_range, tuple):
            x, y = x.clamp(low, high), y.clamp(low, high)
        squares = (x - y) ** 2
        if dim is None:
            return squares.sum(), x.numel()
        total = squares.sum(dim)
        total = total.reshape(-1) if flat or not total.ndim else total
        return total, full_like(total, x.numel() / total.numel())

    return Summed(part, figure) if dim is None else Each(part, figure)


def _error(squared: bool, num_outputs: int) -> Any:
    def figure(n: Any, *sums: Any) -> Any:
        mean = moment.squared_error(n, *sums) / n
        return mean if squared else np.sqrt(mean)

    return metrics.MeanSquaredError(squared) if num_outputs == 1 else Moments(figure, num_outputs)


def _edits(split: Callable[[str], Sequence[Any]], longest: bool = False) -> Build:
    """Edits that make predicted texts the true ones, over the length of these, or of the longer."""

    def part(preds: Any, target: Any) -> tuple[Any, Any]:
        texts = [[x] if isinstance(x, str) else list(x) for x in (preds, target)]
        pairs = [(split(a), split(b)) for a, b in zip(*texts, strict=True)]
        lengths = [max(len(a), len(b)) if longest else len(b) for a, b in pairs]
        return sum(edit_distance(a, b) for a, b in pairs), sum(lengths)

    return lambda: Summed(part)


def _information(lost: bool) -> Build:
    """The part of words that true and predicted texts share; or that they do not."""

    def part(preds: Any, target: Any) -> tuple[Any, Any]:
        texts = [[x] if isinstance(x, str) else list(x) for x in (preds, target)]
        pairs = [(a.split(), b.split()) for a, b in zip(*texts, strict=True)]
        right = sum(max(len(a), len(b)) - edit_distance(a, b) for a, b in pairs)
        return right, np.array([[len(a), len(b)] for a, b in pairs]).sum(0)

    def figure(right: Any, lengths: Any) -> Any:
        kept = right * right / (lengths[0] * lengths[1])
        return 1 - kept if lost else kept

    return lambda: Summed(part, figure)


def _rouge(
    use_stemmer: bool, normalizer: Any, tokenizer: Any, accumulate: str, rouge_keys: Any
) -> metrics.ROUGE:
    """ROUGE with the sentences and stems of NLTK."""
    keys = (rouge_keys,) if isinstance(rouge_keys, str) else rouge_keys
    if accumulate not in ("best", "avg"):
        raise ArgumentError.here(f"expected accumulate 'best' or 'avg', got {accumulate!r}")
    more: dict[str, Any] = {}
    if use_stemmer or "rougeLsum" in keys:
        try:
            nltk: Any = importlib.import_module("nltk")
        except ImportError:
            raise ArgumentError.here(
                "ROUGEScore: expected NLTK for stems and 'rougeLsum', got none; install: "
                "pip install nltk, or give rouge_keys without 'rougeLsum'"
            ) from None
        more["sentences"] = nltk.sent_tokenize
        more["stem"] = nltk.stem.porter.PorterStemmer().stem if use_stemmer else None
    return metrics.ROUGE(keys, accumulate == "best", normalizer, tokenizer, **more)


_EPS: Final = 1.17e-06  # the least denominator of relative errors, as in torchmetrics
MeanSquaredError = _define(
    "MeanSquaredError", "The mean of squared differences.", _error, squared=True, num_outputs=1
)
MeanAbsoluteError = _define(
    "MeanAbsoluteError", "The mean of absolute differences.", metrics.MeanAbsoluteError
)
MeanAbsolutePercentageError = _define(
    "MeanAbsolutePercentageError",
    "The mean of absolute differences relative to targets.",
    _summed(lambda x, y: (x - y).abs() / y.abs().clamp(min=_EPS)),
)
SymmetricMeanAbsolutePercentageError = _define(
    "SymmetricMeanAbsolutePercentageError",
    "The mean of absolute differences relative to the mean of both absolute numbers.",
    _summed(lambda x, y: 2 * (x - y).abs() / (x.abs() + y.abs()).clamp(min=_EPS)),
)
WeightedMeanAbsolutePercentageError = _define(
    "WeightedMeanAbsolutePercentageError",
    "The sum of absolute differences relative to that of absolute targets.",
    lambda: Summed(lambda x, y: ((a := _doubles(x, y))[0].sub(a[1]).abs().sum(), a[1].abs().sum())),
)
MeanSquaredLogError = _define(
    "MeanSquaredLogError",
    "The mean of squared differences of log(1 + x).",
    _summed(lambda x, y: (x.log1p() - y.log1p()) ** 2),
)
LogCoshError = _define(
    "LogCoshError",
    "The mean logarithm of the hyperbolic cosine of differences.",
    _summed(lambda x, y: (x - y).cosh().log()),
)
R2Score = _define(
    "R2Score",
    "The share of the targets' variance that predictions explain.",
    lambda adjusted=0, multioutput="uniform_average": _outputs(moment.determination)(
        multioutput, 1, adjusted
    ),
    adjusted=0,
    multioutput="uniform_average",
)
ExplainedVariance = _define(
    "ExplainedVariance",
    "That share, whatever the mean error.",
    _outputs(moment.explained),
    multioutput="uniform_average",
)
PearsonCorrCoef = _define(
    "PearsonCorrCoef",
    "Pearson's correlation coefficient, of each output.",
    _moments(moment.pearson),
    num_outputs=1,
)
ConcordanceCorrCoef = _define(
    "ConcordanceCorrCoef",
    "Lin's concordance correlation coefficient, of each output.",
    _moments(moment.concordance),
    num_outputs=1,
)
SpearmanCorrCoef = _define(
    "SpearmanCorrCoef",
    "Spearman's correlation coefficient, of each output.",
    lambda num_outputs=1: Pairs(moment.spearman, num_outputs),
    num_outputs=1,
)
KendallRankCorrCoef = _define(
    "KendallRankCorrCoef", "Kendall's tau-b.", lambda: Pairs(moment.kendall)
)
CosineSimilarity = _define(
    "CosineSimilarity",
    "The cosine of the angle between rows: their sum, or mean.",
    lambda reduction="sum": _mean_or_sum(reduction, _similarity),
    reduction="sum",
)
KLDivergence = _define(
    "KLDivergence",
    "The divergence of the second distribution from the first, over rows.",
    lambda log_prob=False, reduction="mean": _mean_or_sum(reduction, _divergence(log_prob)),
    log_prob=False,
    reduction="mean",
)
PeakSignalNoiseRatio = _define(
    "PeakSignalNoiseRatio",
    "The peak signal-to-noise ratio of images.",
    _noise,
    data_range=None,
    base=10.0,
    reduction="elementwise_mean",
    dim=None,
)
FUNCTIONS["peak_signal_noise_ratio"] = made_function(
    "peak_signal_noise_ratio", __name__, str(PeakSignalNoiseRatio.__doc__),
    PeakSignalNoiseRatio.order, partial(_noise, flat=False),
)  # fmt: skip
Perplexity = _define(
    "Perplexity",
    "e to the mean negative log-likelihood of tokens.",
    metrics.Perplexity,
    ignore_index=None,
)
BLEUScore = _define(
    "BLEUScore",
    "How many n-grams of translations are in references, over the whole corpus.",
    metrics.BLEU,
    n_gram=4,
    smooth=False,
)
WordErrorRate = _define(
    "WordErrorRate", "Wrong, missing and needless words, over the words of the true texts.",
    _edits(str.split),
)  # fmt: skip
CharErrorRate = _define(
    "CharErrorRate", "Wrong, missing and needless characters, over those of the true texts.",
    _edits(str),
)  # fmt: skip
MatchErrorRate = _define(
    "MatchErrorRate", "Wrong, missing and needless words, over the words of the longer texts.",
    _edits(str.split, longest=True),
)  # fmt: skip
WordInfoLost = _define(
    "WordInfoLost", "The part of words that true and predicted texts do not share.",
    _information(lost=True),
)  # fmt: skip
WordInfoPreserved = _define(
    "WordInfoPreserved", "The part of words that true and predicted texts share.",
    _information(lost=False),
)  # fmt: skip
ROUGEScore = _define(
    "ROUGEScore",
    "How many n-grams, and which subsequences, texts share with true ones.",
    _rouge,
    use_stemmer=False,
    normalizer=None,
    tokenizer=None,
    accumulate="best",
    rouge_keys=("rouge1", "rouge2", "rougeL", "rougeLsum"),
)
FUNCTIONS["rouge_score"] = made_function(
    "rouge_score", __name__, "Precision, recall and F1 of what texts share with true ones.",
    {"accumulate": "best"} | {k: v for k, v in ROUGEScore.order.items() if k != "accumulate"},
    _rouge,
)  # fmt: skip
