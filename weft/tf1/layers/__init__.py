"""`tf.layers`: layers as functions that create their own variables."""

# ruff: noqa: I001 -- lists to read, not one name a line
from weft.tf1.layers.convolution import (
    conv1d, conv2d, conv2d_transpose, conv3d, conv3d_transpose, separable_conv1d, separable_conv2d,
)  # fmt: skip
from weft.tf1.layers.core import dense, dropout, flatten
from weft.tf1.layers.dense import Dense
from weft.tf1.layers.normalization import batch_normalization
from weft.tf1.layers.pooling import (
    average_pooling1d, average_pooling2d, average_pooling3d, max_pooling1d, max_pooling2d,
    max_pooling3d,
)  # fmt: skip

__all__ = [
    "Dense", "average_pooling1d", "average_pooling2d", "average_pooling3d", "batch_normalization",
    "conv1d", "conv2d", "conv2d_transpose", "conv3d", "conv3d_transpose", "dense", "dropout",
    "flatten", "max_pooling1d", "max_pooling2d", "max_pooling3d", "separable_conv1d",
    "separable_conv2d",
]  # fmt: skip
