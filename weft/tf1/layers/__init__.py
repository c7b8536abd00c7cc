"""`tf.layers`: layers as functions that create their own variables."""

from weft.ops.refusal import guard as _guard
from weft.tf1.layers import convolution as _convolution
from weft.tf1.layers import dense as _dense
from weft.tf1.layers import normalization as _normalization
from weft.tf1.layers import pooling as _pooling
from weft.tf1.layers.convolution import *
from weft.tf1.layers.dense import *
from weft.tf1.layers.normalization import *
from weft.tf1.layers.pooling import *

__all__ = [  # pyright: ignore[reportUnsupportedDunderAll]
    *_convolution.__all__, *_dense.__all__, *_normalization.__all__, *_pooling.__all__,
]  # fmt: skip
_guard(globals())
