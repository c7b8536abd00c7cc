"""Metrics of rankings: classes, and functions of one query."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from weft.metrics.retrieval import Retrieval
from weft.ops.metric import retrieval as scores
from weft.torchmetrics.made import Made, made_class, made_function

__all__ = [
    "RetrievalAUROC", "RetrievalFallOut", "RetrievalHitRate", "RetrievalMAP", "RetrievalMRR",
    "RetrievalNormalizedDCG", "RetrievalPrecision", "RetrievalRPrecision", "RetrievalRecall",
]  # fmt: skip
FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {}
"""The functions by name; `weft.torchmetrics.functional` offers them."""


def _define(
    name: str, score: scores.Score, function: str, order: Mapping[str, Any], **how: Any
) -> type[Made]:
    """A class; defines the function of one query as well."""
    doc = f"{score.__doc__} Over queries, which `update(preds, target, indexes)` gets."

    def build(
        empty_target_action: str = "neg", ignore_index: int | None = None,
        top_k: int | None = None, adaptive_k: bool = False, aggregation: Any = "mean",
    ) -> Retrieval:  # fmt: skip
        rest = (ignore_index, top_k, aggregation, adaptive_k)
        return Retrieval(score, empty_target_action, *rest, **how)

    own = {k: v for k, v in order.items() if k in ("top_k", "adaptive_k")}
    name_of_function = f"retrieval_{function}"
    FUNCTIONS[name_of_function] = made_function(
        name_of_function, __name__, score.__doc__ or "", own, lambda **o: build("neg", **o)
    )
    return made_class(name, __name__, doc, order, build)


_COMMON: Final = {"empty_target_action": "neg", "ignore_index": None}
_ORDER: Final = {**_COMMON, "top_k": None, "aggregation": "mean"}
RetrievalMAP = _define("RetrievalMAP", scores.average_precision, "average_precision", _ORDER)
RetrievalMRR = _define("RetrievalMRR", scores.reciprocal_rank, "reciprocal_rank", _ORDER)
RetrievalPrecision = _define(
    "RetrievalPrecision", scores.precision, "precision",
    {**_COMMON, "top_k": None, "adaptive_k": False, "aggregation": "mean"},
)  # fmt: skip
RetrievalRecall = _define("RetrievalRecall", scores.recall, "recall", _ORDER)
RetrievalHitRate = _define("RetrievalHitRate", scores.hit_rate, "hit_rate", _ORDER)
RetrievalFallOut = _define(
    "RetrievalFallOut", scores.fall_out, "fall_out", {**_ORDER, "empty_target_action": "pos"},
    inverse=True,
)  # fmt: skip
RetrievalRPrecision = _define(
    "RetrievalRPrecision", scores.r_precision, "r_precision", {**_COMMON, "aggregation": "mean"}
)
RetrievalAUROC = _define("RetrievalAUROC", scores.area, "auroc", _ORDER)
RetrievalNormalizedDCG = _define(
    "RetrievalNormalizedDCG", scores.normalized_gain, "normalized_dcg", _ORDER, graded=True
)
