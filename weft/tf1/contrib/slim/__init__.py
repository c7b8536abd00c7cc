"""`tf.contrib.slim`: contrib's layers, losses and variables, and `learning`, under one name."""

from weft import exports as _exports
from weft.tf1 import losses as losses
from weft.tf1 import metrics as metrics
from weft.tf1.contrib import learning as learning
from weft.tf1.contrib.framework import *
from weft.tf1.contrib.layers import *
from weft.tf1.contrib.layers.common import analyze_vars as _analyze_vars
from weft.tf1.contrib.layers.common import end_points as _end_points


class utils:
    """`slim.utils`."""

    convert_collection_to_dict = staticmethod(_end_points)


class model_analyzer:
    """`slim.model_analyzer`."""

    analyze_vars = staticmethod(_analyze_vars)


_exports.gather(globals(), "learning", "losses", "metrics")
