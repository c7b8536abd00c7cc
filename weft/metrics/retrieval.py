"""Metrics of rankings: documents are grouped by the query that they are ranked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

import numpy as np

from weft.errors import ArgumentError, ShapeError
from weft.ir.dtype import float32, int64
from weft.metrics.metric import Array, Merge, Metric, Totals, given
from weft.ops.metric.retrieval import Score

AGGREGATIONS: Final[dict[str, Callable[[Array], Any]]] = {
    "mean": np.mean, "min": np.min, "max": np.max,
    "median": lambda x: np.sort(x)[(len(x) - 1) // 2],  # the lower one of two, as in PyTorch
}  # fmt: skip
EMPTY: Final = {"neg": 0.0, "pos": 1.0, "skip": None, "error": None}
"""What becomes of a query without relevant documents."""


class Retrieval(Metric):
    """The aggregate over queries of a score of each.

    Args:
        score: of scores and relevances of a query's documents, and the number of those shown.
        empty: `"neg"`, `"pos"`, `"skip"` or `"error"`: what a query without relevant documents is.
        ignore_index: a relevance that is not counted.
        top_k: how many documents are shown; all by default.
        aggregation: `"mean"`, `"median"`, `"min"`, `"max"`, or a function of an array.
        adaptive: whether no more documents are shown than a query has.
        graded: whether relevances may be other numbers than 0 and 1.
        inverse: whether queries without other documents are empty.
    """

    merges: ClassVar[Mapping[str, Merge]] = dict.fromkeys(
        ("preds", "target", "indexes"), "concatenate"
    )

    def __init__(
        self, score: Score, empty: str, ignore_index: int | None, top_k: int | None,
        aggregation: Any, adaptive: bool = False, graded: bool = False, inverse: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        if empty not in EMPTY or (aggregation not in AGGREGATIONS and not callable(aggregation)):
            raise ArgumentError.here(
                f"Retrieval: expected empty_target_action of {list(EMPTY)} and aggregation of "
                f"{list(AGGREGATIONS)} or a function, got {empty!r} and {aggregation!r}"
            )
        if top_k is not None and (type(top_k) is not int or top_k < 1):
            raise ArgumentError.here(f"Retrieval: expected top_k from 1 on or None, got {top_k!r}")
        self._score, self._empty, self._ignored, self._k = score, empty, ignore_index, top_k
        is_named = isinstance(aggregation, str)
        self._aggregate: Any = AGGREGATIONS[aggregation] if is_named else aggregation
        self._adaptive, self._graded, self._inverse = adaptive, graded, inverse

    def part(self, preds: Any, target: Any, indexes: Any = None) -> dict[str, Any]:
        """Scores, relevances, and numbers of queries, of one shape; one query without numbers."""
        p, t = given(preds), given(target)
        i = t.new_zeros(t.shape, dtype=int64) if indexes is None else given(indexes)
        if not p.shape == t.shape == i.shape or not p.dtype.is_floating:
            raise ShapeError.here(
                f"Retrieval: expected floats as scores, relevances and queries of one shape, got "
                f"{tuple(p.shape)} of {p.dtype}, {tuple(t.shape)} and {tuple(i.shape)}"
            )
        parts = {"preds": p.to(float32), "target": t.to(t.dtype if t.dtype.is_floating else int64)}
        return {k: x.reshape(-1).clone() for k, x in {**parts, "indexes": i.to(int64)}.items()}

    def value(self, totals: Totals) -> float:
        """The aggregate; 0 if all queries are skipped."""
        preds, target, queries = [totals[name] for name in self.merges]
        if self._ignored is not None:
            kept = target != self._ignored
            preds, target, queries = preds[kept], target[kept], queries[kept]
        if not self._graded and not np.isin(target, (0, 1)).all():
            raise ArgumentError.here("Retrieval: expected relevances 0 and 1, got others")
        groups = [queries == query for query in np.unique(queries)]
        scores = [self._of_query(preds[group], target[group]) for group in groups]
        found = [x for x in scores if x is not None]
        return float(self._aggregate(np.array(found, np.float32))) if found else 0.0

    def _of_query(self, preds: Array, target: Array) -> float | None:
        if not (1 - target if self._inverse else target).sum():
            if self._empty == "error":
                raise ArgumentError.here("Retrieval: expected relevant documents of each query")
            return EMPTY[self._empty]
        k = len(preds) if self._k is None else self._k
        return self._score(preds, target, min(k, len(preds)) if self._adaptive else k)
