"""Made by `python -m tools.package_stubs`."""

from weft.tf1.saved_model import builder as builder
from weft.tf1.saved_model import loader as loader
from weft.tf1.saved_model import signature as _signature_def_utils
signature_def_utils = _signature_def_utils
from weft.tf1.saved_model import signature as _utils
utils = _utils
from weft.tf1.saved_model.builder import *
from weft.tf1.saved_model.constants import *
from weft.tf1.saved_model.loader import *
from weft.tf1.saved_model.signature import *
from weft.tf1.keras.storage.model_folder import load as load
from weft.tf1.keras.storage.model_folder import save as save
