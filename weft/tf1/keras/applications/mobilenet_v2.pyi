"""Made by `python -m tools.package_stubs`."""

from weft.tf1.keras.applications.images import from_minus_one as _preprocess_input
preprocess_input = _preprocess_input
from weft.tf1.keras.applications.network import MobileNetV2 as MobileNetV2
