"""`tf.contrib.framework`: defaults of arguments, variables of models, the global step."""

from weft import exports as _exports
from weft.tf1.contrib.framework.arg_scope import *
from weft.tf1.contrib.framework.variables import *
from weft.tf1.framework.tensor import Tensor as _Tensor
from weft.tf1.train.checkpoint_reader import *
from weft.tf1.train.learning_rate import create_global_step as create_global_step
from weft.tf1.train.learning_rate import get_global_step as get_global_step
from weft.tf1.train.learning_rate import get_or_create_global_step as get_or_create_global_step


def is_tensor(x: object) -> bool:
    """Whether it is a tensor or a variable."""
    return isinstance(x, _Tensor) or hasattr(x, "_as_graph_tensor")


_exports.gather(globals())
