"""`tf.contrib.layers`: layers as functions, regularizers, initializers, `optimize_loss`."""

from weft import exports as _exports
from weft.tf1.contrib.layers.convolution import *
from weft.tf1.contrib.layers.dense import *
from weft.tf1.contrib.layers.normalization import *
from weft.tf1.contrib.layers.optimizer import *
from weft.tf1.contrib.layers.regularizer import *

legacy_fully_connected = fully_connected

_exports.gather(globals())
