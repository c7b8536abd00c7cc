"""`tf.saved_model`: Keras models in folders, and names that model functions use."""

from __future__ import annotations

from typing import Final

from weft import exports as _exports

__all__ = ["signature_constants", "tag_constants"]


class signature_constants:
    """Keys of signatures."""

    CLASSIFY_INPUTS: Final = "inputs"
    CLASSIFY_METHOD_NAME: Final = "tensorflow/serving/classify"
    CLASSIFY_OUTPUT_CLASSES: Final = "classes"
    CLASSIFY_OUTPUT_SCORES: Final = "scores"
    DEFAULT_SERVING_SIGNATURE_DEF_KEY: Final = "serving_default"
    PREDICT_INPUTS: Final = "inputs"
    PREDICT_METHOD_NAME: Final = "tensorflow/serving/predict"
    PREDICT_OUTPUTS: Final = "outputs"
    REGRESS_INPUTS: Final = "inputs"
    REGRESS_METHOD_NAME: Final = "tensorflow/serving/regress"
    REGRESS_OUTPUTS: Final = "outputs"


class tag_constants:
    """Names of graphs in a file."""

    GPU: Final = "gpu"
    SERVING: Final = "serve"
    TPU: Final = "tpu"
    TRAINING: Final = "train"


_exports.lazy(globals(), {"weft.tf1.keras.storage.model_folder": ["load", "save"]})
