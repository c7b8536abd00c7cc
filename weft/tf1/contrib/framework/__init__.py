"""`tf.contrib.framework`: defaults of arguments, variables of models, the global step."""

from weft import exports as _exports
from weft.tf1.contrib.framework.arg_scope import *
from weft.tf1.contrib.framework.variables import *
from weft.tf1.framework.convert import is_tensor as is_tensor
from weft.tf1.train.checkpoint_reader import *
from weft.tf1.train.learning_rate import create_global_step as create_global_step
from weft.tf1.train.learning_rate import get_global_step as get_global_step
from weft.tf1.train.learning_rate import get_or_create_global_step as get_or_create_global_step

_exports.gather(globals())
