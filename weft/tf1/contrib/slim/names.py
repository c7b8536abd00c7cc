"""Names of slim that are modules in TensorFlow."""

from __future__ import annotations

from weft.tf1.contrib.layers.common import analyze_vars, end_points

__all__ = ["model_analyzer", "utils"]


class utils:
    """`slim.utils`."""

    convert_collection_to_dict = staticmethod(end_points)


class model_analyzer:
    """`slim.model_analyzer`."""

    analyze_vars = staticmethod(analyze_vars)
