"""Made by `python -m tools.package_stubs`."""

from weft.tf1.keras.applications.images import blue_first as _preprocess_input
preprocess_input = _preprocess_input
from weft.tf1.keras.applications.network import ResNet50 as ResNet50
