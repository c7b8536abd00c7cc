"""`tf.estimator`: model functions, trained, evaluated and asked for predictions."""

from weft import exports as _exports
from weft.tf1.estimator.modes import *

_exports.gather(globals(), "export", "inputs")
_exports.lazy(
    globals(),
    {
        "weft.tf1.estimator": ["export", "inputs"],
        "weft.tf1.estimator.head": [
            "BinaryClassHead", "Head", "MultiClassHead", "RegressionHead",
        ],
        "weft.tf1.estimator.exporter": [
            "BestExporter", "Exporter", "FinalExporter", "LatestExporter",
        ],
        "weft.tf1.estimator.estimator": ["Estimator", "train_and_evaluate"],
        "weft.tf1.estimator.canned": [
            "BaselineClassifier", "BaselineRegressor", "DNNClassifier",
            "DNNLinearCombinedClassifier", "DNNLinearCombinedRegressor", "DNNRegressor",
            "LinearClassifier", "LinearRegressor",
        ],
    },
)  # fmt: skip
