"""`tf.saved_model`: graphs and Keras models in folders."""

# pyright: reportUnusedImport=false
from weft import exports as _exports
from weft.tf1.saved_model import builder as builder
from weft.tf1.saved_model import loader as loader
from weft.tf1.saved_model import signature as signature_def_utils
from weft.tf1.saved_model import signature as utils
from weft.tf1.saved_model.builder import *
from weft.tf1.saved_model.constants import *
from weft.tf1.saved_model.loader import *
from weft.tf1.saved_model.signature import *

_exports.gather(globals(), "builder", "loader", "signature_def_utils", "utils")
_exports.lazy(globals(), {"weft.tf1.keras.storage.model_folder": ["load", "save"]})
