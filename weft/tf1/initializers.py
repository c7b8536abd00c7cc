"""`tf.initializers` and `tf.keras.initializers`."""

from weft.tf1.variable.initializer import Constant as constant
from weft.tf1.variable.initializer import Identity as identity
from weft.tf1.variable.initializer import (
    Initializer,
    fans,
    glorot_normal_initializer,
    glorot_uniform_initializer,
    he_normal,
    he_uniform,
    lecun_normal,
    lecun_uniform,
    xavier_initializer,
)  # fmt: skip
from weft.tf1.variable.initializer import Ones as ones
from weft.tf1.variable.initializer import Orthogonal as orthogonal
from weft.tf1.variable.initializer import RandomNormal as random_normal
from weft.tf1.variable.initializer import RandomUniform as random_uniform
from weft.tf1.variable.initializer import TruncatedNormal as truncated_normal
from weft.tf1.variable.initializer import UniformUnitScaling as uniform_unit_scaling
from weft.tf1.variable.initializer import VarianceScaling as variance_scaling
from weft.tf1.variable.initializer import Zeros as zeros
from weft.tf1.variable.variable_list import global_variables_initializer as global_variables
from weft.tf1.variable.variable_list import local_variables_initializer as local_variables
from weft.tf1.variable.variable_list import variables_initializer as variables

glorot_uniform = glorot_uniform_initializer
glorot_normal = glorot_normal_initializer
xavier = xavier_initializer

__all__ = [
    "Initializer", "constant", "fans", "global_variables", "glorot_normal", "glorot_uniform",
    "he_normal", "he_uniform", "identity", "lecun_normal", "lecun_uniform", "local_variables",
    "ones", "orthogonal", "random_normal", "random_uniform", "truncated_normal",
    "uniform_unit_scaling", "variables", "variance_scaling", "xavier", "xavier_initializer",
    "zeros",
]  # fmt: skip
