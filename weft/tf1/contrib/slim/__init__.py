"""`tf.contrib.slim`: contrib's layers, losses and variables, and `learning`, under one name."""

from weft import exports as _exports
from weft.tf1.contrib import learning as learning
from weft.tf1.contrib import losses as losses
from weft.tf1.contrib import metrics as metrics
from weft.tf1.contrib.framework import *
from weft.tf1.contrib.layers import *
from weft.tf1.contrib.slim.names import model_analyzer as model_analyzer
from weft.tf1.contrib.slim.names import utils as utils

_exports.gather(globals(), "learning", "losses", "metrics")
