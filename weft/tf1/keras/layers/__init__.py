"""`tf.keras.layers`."""

from weft import exports as _exports
from weft.tf1.keras.engine.input_layer import Input as Input
from weft.tf1.keras.engine.input_layer import InputLayer as InputLayer
from weft.tf1.keras.engine.input_spec import InputSpec as InputSpec
from weft.tf1.keras.engine.layer import Layer as Layer
from weft.tf1.keras.layers.advanced_activations import *
from weft.tf1.keras.layers.border import *
from weft.tf1.keras.layers.cells import *
from weft.tf1.keras.layers.convolution import *
from weft.tf1.keras.layers.convolution_transpose import *
from weft.tf1.keras.layers.core import *
from weft.tf1.keras.layers.dense import Dense as Dense
from weft.tf1.keras.layers.embedding import Embedding as Embedding
from weft.tf1.keras.layers.image_preprocessing import *
from weft.tf1.keras.layers.merge import *
from weft.tf1.keras.layers.noise import *
from weft.tf1.keras.layers.normalization import *
from weft.tf1.keras.layers.pooling import *
from weft.tf1.keras.layers.recurrent import *
from weft.tf1.keras.layers.reshaping import *
from weft.tf1.keras.layers.table import *
from weft.tf1.keras.layers.text_vectorization import *
from weft.tf1.keras.layers.wrappers import *

Convolution1D, Convolution2D, Convolution3D = Conv1D, Conv2D, Conv3D
Convolution2DTranspose, SeparableConvolution2D = Conv2DTranspose, SeparableConv2D
MaxPool1D, MaxPool2D, MaxPool3D = MaxPooling1D, MaxPooling2D, MaxPooling3D
AvgPool1D, AvgPool2D, AvgPool3D = AveragePooling1D, AveragePooling2D, AveragePooling3D
GlobalMaxPool1D, GlobalMaxPool2D = GlobalMaxPooling1D, GlobalMaxPooling2D
GlobalAvgPool1D, GlobalAvgPool2D = GlobalAveragePooling1D, GlobalAveragePooling2D

_exports.gather(globals())
