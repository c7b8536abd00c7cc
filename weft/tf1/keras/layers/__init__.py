"""`tf.keras.layers`."""

from weft.tf1.keras.engine.input_layer import Input, InputLayer
from weft.tf1.keras.engine.input_spec import InputSpec
from weft.tf1.keras.engine.layer import Layer
from weft.tf1.keras.layers.advanced_activations import (
    ELU,
    LeakyReLU,
    PReLU,
    ReLU,
    Softmax,
    ThresholdedReLU,
)  # fmt: skip
from weft.tf1.keras.layers.border import (
    Cropping1D,
    Cropping2D,
    Cropping3D,
    UpSampling1D,
    UpSampling2D,
    UpSampling3D,
    ZeroPadding1D,
    ZeroPadding2D,
    ZeroPadding3D,
)  # fmt: skip
from weft.tf1.keras.layers.cells import GRUCell, LSTMCell, SimpleRNNCell, StackedRNNCells
from weft.tf1.keras.layers.convolution import (
    Conv1D,
    Conv2D,
    Conv3D,
    DepthwiseConv2D,
    SeparableConv1D,
    SeparableConv2D,
)  # fmt: skip
from weft.tf1.keras.layers.convolution_transpose import Conv2DTranspose, Conv3DTranspose
from weft.tf1.keras.layers.core import Activation, ActivityRegularization, Lambda, Masking
from weft.tf1.keras.layers.dense import Dense
from weft.tf1.keras.layers.embedding import Embedding
from weft.tf1.keras.layers.merge import (
    Add,
    Average,
    Concatenate,
    Dot,
    Maximum,
    Minimum,
    Multiply,
    Subtract,
    add,
    average,
    concatenate,
    dot,
    maximum,
    minimum,
    multiply,
    subtract,
)  # fmt: skip
from weft.tf1.keras.layers.noise import (
    AlphaDropout,
    Dropout,
    GaussianDropout,
    GaussianNoise,
    SpatialDropout1D,
    SpatialDropout2D,
    SpatialDropout3D,
)  # fmt: skip
from weft.tf1.keras.layers.normalization import BatchNormalization, LayerNormalization
from weft.tf1.keras.layers.pooling import (
    AveragePooling1D,
    AveragePooling2D,
    AveragePooling3D,
    GlobalAveragePooling1D,
    GlobalAveragePooling2D,
    GlobalAveragePooling3D,
    GlobalMaxPooling1D,
    GlobalMaxPooling2D,
    GlobalMaxPooling3D,
    MaxPooling1D,
    MaxPooling2D,
    MaxPooling3D,
)  # fmt: skip
from weft.tf1.keras.layers.recurrent import GRU, LSTM, RNN, SimpleRNN
from weft.tf1.keras.layers.reshaping import Flatten, Permute, RepeatVector, Reshape
from weft.tf1.keras.layers.table import deserialize, serialize
from weft.tf1.keras.layers.wrappers import Bidirectional, TimeDistributed, Wrapper

Convolution1D, Convolution2D, Convolution3D = Conv1D, Conv2D, Conv3D
Convolution2DTranspose, SeparableConvolution2D = Conv2DTranspose, SeparableConv2D
MaxPool1D, MaxPool2D, MaxPool3D = MaxPooling1D, MaxPooling2D, MaxPooling3D
AvgPool1D, AvgPool2D, AvgPool3D = AveragePooling1D, AveragePooling2D, AveragePooling3D
GlobalMaxPool1D, GlobalMaxPool2D = GlobalMaxPooling1D, GlobalMaxPooling2D
GlobalAvgPool1D, GlobalAvgPool2D = GlobalAveragePooling1D, GlobalAveragePooling2D

__all__ = [
    "ELU", "GRU", "LSTM", "RNN", "Activation", "ActivityRegularization", "Add", "AlphaDropout",
    "Average", "AveragePooling1D", "AveragePooling2D", "AveragePooling3D", "AvgPool1D",
    "AvgPool2D", "AvgPool3D", "BatchNormalization", "Bidirectional", "Concatenate", "Conv1D",
    "Conv2D", "Conv2DTranspose", "Conv3D", "Conv3DTranspose", "Convolution1D", "Convolution2D",
    "Convolution2DTranspose", "Convolution3D", "Cropping1D", "Cropping2D", "Cropping3D", "Dense",
    "DepthwiseConv2D", "Dot", "Dropout", "Embedding", "Flatten", "GRUCell", "GaussianDropout",
    "GaussianNoise", "GlobalAveragePooling1D", "GlobalAveragePooling2D", "GlobalAveragePooling3D",
    "GlobalAvgPool1D", "GlobalAvgPool2D", "GlobalMaxPool1D", "GlobalMaxPool2D",
    "GlobalMaxPooling1D", "GlobalMaxPooling2D", "GlobalMaxPooling3D", "Input", "InputLayer",
    "InputSpec", "LSTMCell", "Lambda", "Layer", "LayerNormalization", "LeakyReLU", "Masking",
    "MaxPool1D", "MaxPool2D", "MaxPool3D", "MaxPooling1D", "MaxPooling2D", "MaxPooling3D",
    "Maximum", "Minimum", "Multiply", "PReLU", "Permute", "ReLU", "RepeatVector", "Reshape",
    "SeparableConv1D", "SeparableConv2D", "SeparableConvolution2D", "SimpleRNN", "SimpleRNNCell",
    "Softmax", "SpatialDropout1D", "SpatialDropout2D", "SpatialDropout3D", "StackedRNNCells",
    "Subtract", "ThresholdedReLU", "TimeDistributed", "UpSampling1D", "UpSampling2D",
    "UpSampling3D", "Wrapper", "ZeroPadding1D", "ZeroPadding2D", "ZeroPadding3D", "add", "average",
    "concatenate", "deserialize", "dot", "maximum", "minimum", "multiply", "serialize", "subtract",
]  # fmt: skip
