"""Made by `python -m tools.package_stubs`."""

from weft.tf1.keras import activations as activations
from weft.tf1.keras import applications as applications
from weft.tf1.keras import backend as backend
from weft.tf1.keras import callbacks as callbacks
from weft.tf1.keras import constraints as constraints
from weft.tf1.keras import datasets as datasets
from weft.tf1.keras import initializers as initializers
from weft.tf1.keras import layers as layers
from weft.tf1.keras import losses as losses
from weft.tf1.keras import metrics as metrics
from weft.tf1.keras import models as models
from weft.tf1.keras import optimizers as optimizers
from weft.tf1.keras import preprocessing as preprocessing
from weft.tf1.keras import regularizers as regularizers
from weft.tf1.keras import utils as utils
from weft.tf1.keras.engine.input_layer import Input as Input
from weft.tf1.keras.engine.model import Model as Model
from weft.tf1.keras.engine.model import Sequential as Sequential
