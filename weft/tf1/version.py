"""The version of TensorFlow whose names `weft.tf1` has."""

from typing import Final

VERSION: Final = "1.15.5"
