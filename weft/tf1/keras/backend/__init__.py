"""`tf.keras.backend`: functions of tensors, sessions, values and settings."""

from weft import exports as _exports
from weft.tf1.keras.activations import elu as elu
from weft.tf1.keras.activations import hard_sigmoid as hard_sigmoid
from weft.tf1.keras.activations import relu as relu
from weft.tf1.keras.backend.ctc import *
from weft.tf1.keras.backend.function import *
from weft.tf1.keras.backend.state import *
from weft.tf1.keras.engine.sessions import get_session as get_session
from weft.tf1.keras.engine.sessions import set_session as set_session
from weft.tf1.keras.engine.settings import epsilon as epsilon
from weft.tf1.keras.engine.settings import floatx as floatx
from weft.tf1.keras.engine.settings import image_data_format as image_data_format
from weft.tf1.keras.engine.settings import in_test_phase as in_test_phase
from weft.tf1.keras.engine.settings import in_train_phase as in_train_phase
from weft.tf1.keras.engine.settings import learning_phase as learning_phase
from weft.tf1.keras.engine.settings import set_epsilon as set_epsilon
from weft.tf1.keras.engine.settings import set_floatx as set_floatx
from weft.tf1.keras.engine.settings import set_image_data_format as set_image_data_format
from weft.tf1.keras.engine.settings import set_learning_phase as set_learning_phase
from weft.tf1.keras.layers.border import repeat_elements as repeat_elements
from weft.tf1.keras.layers.merge import batch_dot as batch_dot

_exports.gather(globals())
