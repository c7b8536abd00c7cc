"""The versions of TensorFlow whose names and behavior programs get."""

from typing import Final

VERSION: Final = "1.15.5"
VERSION_2: Final = "2.15.1"
KERAS_VERSION: Final = "2.2.4-tf"
KERAS_VERSION_2: Final = "2.15.0"
"""What programs for TensorFlow 2 are told."""


class Behavior:
    """Whether comparisons, shapes and names of metrics are those of TensorFlow 2; and whether
    functions run in Python at each call."""

    is_2 = False  # set by `enable_v2_behavior`
    runs_functions = False  # set by `run_functions_eagerly`
