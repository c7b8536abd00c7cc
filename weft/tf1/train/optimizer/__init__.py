"""`tf.train`'s optimizers, one per file."""

from weft import exports as _exports
from weft.tf1.train.optimizer.adadelta import AdadeltaOptimizer as AdadeltaOptimizer
from weft.tf1.train.optimizer.adagrad import AdagradOptimizer as AdagradOptimizer
from weft.tf1.train.optimizer.adagrad_da import AdagradDAOptimizer as AdagradDAOptimizer
from weft.tf1.train.optimizer.adam import AdamOptimizer as AdamOptimizer
from weft.tf1.train.optimizer.base import Optimizer as Optimizer
from weft.tf1.train.optimizer.ftrl import FtrlOptimizer as FtrlOptimizer
from weft.tf1.train.optimizer.gradient_descent import (
    GradientDescentOptimizer as GradientDescentOptimizer,
)
from weft.tf1.train.optimizer.momentum import MomentumOptimizer as MomentumOptimizer
from weft.tf1.train.optimizer.proximal import *
from weft.tf1.train.optimizer.rmsprop import RMSPropOptimizer as RMSPropOptimizer

_exports.gather(globals())
