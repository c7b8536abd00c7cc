"""Metrics that are the mean of a function, and metrics by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from weft.tf1.keras import losses
from weft.tf1.keras.engine.graph_state import snake
from weft.tf1.keras.metrics import confusion, function, mean
from weft.tf1.keras.metrics.mean import MeanMetricWrapper
from weft.tf1.keras.storage.serialization import getter, serialize

__all__ = [
    "NAMES", "Accuracy", "BinaryAccuracy", "BinaryCrossentropy", "CategoricalAccuracy",
    "CategoricalCrossentropy", "CosineSimilarity", "Hinge", "KLDivergence", "MeanAbsoluteError",
    "MeanAbsolutePercentageError", "MeanSquaredError", "MeanSquaredLogarithmicError", "Poisson",
    "SparseCategoricalAccuracy", "SparseCategoricalCrossentropy", "SparseTopKCategoricalAccuracy",
    "SquaredHinge", "TopKCategoricalAccuracy", "deserialize", "get", "serialize",
]  # fmt: skip


def _class(name: str, fn: Callable[..., Any], **defaults: Any) -> type[MeanMetricWrapper]:
    class Made(MeanMetricWrapper):
        def __init__(self, name: str | None = None, dtype: Any = None, **options: Any) -> None:
            super().__init__(fn, name or _NAME, dtype, **{**defaults, **options})

    _NAME = {"KLDivergence": "kullback_leibler_divergence"}.get(name, snake(name))
    Made.__name__ = Made.__qualname__ = name
    Made.__doc__ = fn.__doc__
    return Made


def _cosine(y_true: Any, y_pred: Any, axis: int = -1) -> Any:
    """sum(normalized y_true * normalized y_pred)"""
    return -losses.cosine_similarity(y_true, y_pred, axis)


Accuracy = _class("Accuracy", function.accuracy)
BinaryAccuracy = _class("BinaryAccuracy", function.binary_accuracy, threshold=0.5)
CategoricalAccuracy = _class("CategoricalAccuracy", function.categorical_accuracy)
SparseCategoricalAccuracy = _class(
    "SparseCategoricalAccuracy", function.sparse_categorical_accuracy
)
TopKCategoricalAccuracy = _class(
    "TopKCategoricalAccuracy", function.top_k_categorical_accuracy, k=5
)
SparseTopKCategoricalAccuracy = _class(
    "SparseTopKCategoricalAccuracy", function.sparse_top_k_categorical_accuracy, k=5
)
MeanSquaredError = _class("MeanSquaredError", losses.mean_squared_error)
MeanAbsoluteError = _class("MeanAbsoluteError", losses.mean_absolute_error)
MeanAbsolutePercentageError = _class(
    "MeanAbsolutePercentageError", losses.mean_absolute_percentage_error
)
MeanSquaredLogarithmicError = _class(
    "MeanSquaredLogarithmicError", losses.mean_squared_logarithmic_error
)
Hinge = _class("Hinge", losses.hinge)
SquaredHinge = _class("SquaredHinge", losses.squared_hinge)
BinaryCrossentropy = _class("BinaryCrossentropy", losses.binary_crossentropy)
CategoricalCrossentropy = _class("CategoricalCrossentropy", losses.categorical_crossentropy)
SparseCategoricalCrossentropy = _class(
    "SparseCategoricalCrossentropy", losses.sparse_categorical_crossentropy
)
KLDivergence = _class("KLDivergence", losses.kullback_leibler_divergence)
Poisson = _class("Poisson", losses.poisson)
CosineSimilarity = _class("CosineSimilarity", _cosine)

_CLASSES: Final = (
    Accuracy, BinaryAccuracy, BinaryCrossentropy, CategoricalAccuracy, CategoricalCrossentropy,
    CosineSimilarity, Hinge, KLDivergence, MeanAbsoluteError, MeanAbsolutePercentageError,
    MeanSquaredError, MeanSquaredLogarithmicError, Poisson, SparseCategoricalAccuracy,
    SparseCategoricalCrossentropy, SparseTopKCategoricalAccuracy, SquaredHinge,
    TopKCategoricalAccuracy, mean.Mean, mean.RootMeanSquaredError, mean.Sum, *confusion.CLASSES,
)  # fmt: skip
_FUNCTIONS: Final = (
    function.binary_accuracy, function.categorical_accuracy, function.sparse_categorical_accuracy,
    function.sparse_top_k_categorical_accuracy, function.top_k_categorical_accuracy,
)  # fmt: skip
NAMES: Final[dict[str, Any]] = {
    **{name: x for name, x in losses.NAMES.items() if not isinstance(x, type)},
    **{f.__name__: f for f in _FUNCTIONS},
    **{kind.__name__: kind for kind in _CLASSES},
}


get = deserialize = getter("metric", NAMES)
