"""`tf.layers`: layers as functions that create their own variables."""

from weft import exports as _exports
from weft.ops.refusal import guard as _guard
from weft.tf1.keras.engine.input_spec import InputSpec as InputSpec
from weft.tf1.layers.convolution import *
from weft.tf1.layers.dense import *
from weft.tf1.layers.normalization import BatchNormalization as BatchNormalization
from weft.tf1.layers.normalization import batch_normalization as batch_normalization
from weft.tf1.layers.pooling import *

_exports.gather(globals())
_guard(globals())
