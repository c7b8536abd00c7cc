"""Names of the parts of saved models."""

from __future__ import annotations

from typing import Final

__all__ = ["constants", "signature_constants", "tag_constants"]


class constants:
    """Names of files, folders and collections."""

    ASSETS_DIRECTORY: Final = "assets"
    ASSETS_KEY: Final = "saved_model_assets"
    LEGACY_INIT_OP_KEY: Final = "legacy_init_op"
    MAIN_OP_KEY: Final = "saved_model_main_op"
    SAVED_MODEL_FILENAME_PB: Final = "saved_model.pb"
    SAVED_MODEL_FILENAME_PBTXT: Final = "saved_model.pbtxt"
    SAVED_MODEL_SCHEMA_VERSION: Final = 1
    VARIABLES_DIRECTORY: Final = "variables"
    VARIABLES_FILENAME: Final = "variables"


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
