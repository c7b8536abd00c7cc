"""Convolutions, their transposes, and separable ones."""

from __future__ import annotations

from weft.tf1.keras.layers import convolution as keras
from weft.tf1.keras.layers import convolution_transpose as transposed
from weft.tf1.layers.scoped import Scoped, documented, layer_function

__all__ = [
    "Conv1D", "Conv2D", "Conv2DTranspose", "Conv3D", "Conv3DTranspose", "SeparableConv1D",
    "SeparableConv2D", "conv1d", "conv2d", "conv2d_transpose", "conv3d", "conv3d_transpose",
    "separable_conv1d", "separable_conv2d",
]  # fmt: skip


@documented
class Conv1D(Scoped, keras.Conv1D):
    """activation(convolution in 1 dimension + bias)"""


@documented
class Conv2D(Scoped, keras.Conv2D):
    """activation(convolution in 2 dimensions + bias)"""


@documented
class Conv3D(Scoped, keras.Conv3D):
    """activation(convolution in 3 dimensions + bias)"""


@documented
class Conv2DTranspose(Scoped, transposed.Conv2DTranspose):
    """activation(transposed convolution in 2 dimensions + bias)"""


@documented
class Conv3DTranspose(Scoped, transposed.Conv3DTranspose):
    """activation(transposed convolution in 3 dimensions + bias)"""


@documented
class SeparableConv1D(Scoped, keras.SeparableConv1D):
    """activation(convolution in 1 dimension of each channel alone, then of size 1)"""


@documented
class SeparableConv2D(Scoped, keras.SeparableConv2D):
    """activation(convolution in 2 dimensions of each channel alone, then of size 1)"""


conv1d, conv2d, conv3d = map(layer_function, (Conv1D, Conv2D, Conv3D))
conv2d_transpose, conv3d_transpose = (
    layer_function(layer, left_out=("output_padding", "dilation_rate"))
    for layer in (Conv2DTranspose, Conv3DTranspose)
)
separable_conv1d, separable_conv2d = map(layer_function, (SeparableConv1D, SeparableConv2D))
