"""`tf.keras.metrics`: metrics over batches, kept in variables that steps update."""

from weft.tf1.keras.metrics.confusion import (
    AUC,
    FalseNegatives,
    FalsePositives,
    Precision,
    Recall,
    TrueNegatives,
    TruePositives,
)  # fmt: skip
from weft.tf1.keras.metrics.function import (
    binary_accuracy,
    categorical_accuracy,
    sparse_categorical_accuracy,
    sparse_top_k_categorical_accuracy,
    top_k_categorical_accuracy,
)  # fmt: skip
from weft.tf1.keras.metrics.mean import Mean, MeanMetricWrapper, RootMeanSquaredError, Sum
from weft.tf1.keras.metrics.metric import Metric
from weft.tf1.keras.metrics.named import (
    NAMES,
    Accuracy,
    BinaryAccuracy,
    BinaryCrossentropy,
    CategoricalAccuracy,
    CategoricalCrossentropy,
    CosineSimilarity,
    Hinge,
    KLDivergence,
    MeanAbsoluteError,
    MeanAbsolutePercentageError,
    MeanSquaredError,
    MeanSquaredLogarithmicError,
    Poisson,
    SparseCategoricalAccuracy,
    SparseCategoricalCrossentropy,
    SparseTopKCategoricalAccuracy,
    SquaredHinge,
    TopKCategoricalAccuracy,
    deserialize,
    get,
    serialize,
)  # fmt: skip

__all__ = [
    "AUC", "NAMES", "Accuracy", "BinaryAccuracy", "BinaryCrossentropy", "CategoricalAccuracy",
    "CategoricalCrossentropy", "CosineSimilarity", "FalseNegatives", "FalsePositives", "Hinge",
    "KLDivergence", "Mean", "MeanAbsoluteError", "MeanAbsolutePercentageError",
    "MeanMetricWrapper", "MeanSquaredError", "MeanSquaredLogarithmicError", "Metric", "Poisson",
    "Precision", "Recall", "RootMeanSquaredError", "SparseCategoricalAccuracy",
    "SparseCategoricalCrossentropy", "SparseTopKCategoricalAccuracy", "SquaredHinge", "Sum",
    "TopKCategoricalAccuracy", "TrueNegatives", "TruePositives", "binary_accuracy",
    "categorical_accuracy", "deserialize", "get", "serialize", "sparse_categorical_accuracy",
    "sparse_top_k_categorical_accuracy", "top_k_categorical_accuracy",
]  # fmt: skip
