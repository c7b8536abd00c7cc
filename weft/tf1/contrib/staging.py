"""`tf.contrib.staging`: areas between steps."""

from weft.tf1.data_flow.staging import StagingArea as StagingArea

__all__ = ["StagingArea"]
