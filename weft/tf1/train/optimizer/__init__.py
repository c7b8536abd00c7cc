"""`tf.train`'s optimizers, one family a file, as `weft.ops.optimizer` has their rules."""

from weft import exports as _exports
from weft.tf1.train.optimizer.adam import AdamOptimizer as AdamOptimizer
from weft.tf1.train.optimizer.base import Optimizer as Optimizer
from weft.tf1.train.optimizer.descent import *
from weft.tf1.train.optimizer.proximal import *
from weft.tf1.train.optimizer.root import *

_exports.gather(globals())
