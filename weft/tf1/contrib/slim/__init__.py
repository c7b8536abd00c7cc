"""`tf.contrib.slim`: contrib's layers, losses and variables, and `learning`, under one name."""

from weft import exports as _exports
from weft.tf1 import losses as losses
from weft.tf1 import metrics as metrics
from weft.tf1.contrib.framework import *
from weft.tf1.contrib.layers import *
from weft.tf1.contrib.layers.common import end_points as _end_points
from weft.tf1.contrib.slim import learning as learning

_exports.gather(globals(), "learning", "losses", "metrics")
utils = type("utils", (), {"convert_collection_to_dict": staticmethod(_end_points)})
__all__ = [*__all__, "utils"]
