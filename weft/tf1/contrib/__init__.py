"""The most used parts of `tf.contrib`: `cluster_resolver`, `framework`, `lookup`, `rnn`, ..."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.tf1.contrib import lookup as lookup
from weft.tf1.contrib import seq2seq as seq2seq
from weft.tf1.contrib import training as training
from weft.tf1.data_flow.staging import StagingArea as _StagingArea
from weft.tf1.distribute import cluster_resolver as cluster_resolver
from weft.tf1.elementwise import arithmetic
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.graph import name_scope
from weft.tf1.layers import flatten as _flatten
from weft.tf1.nn import activation, rnn_cell
from weft.tf1.nn import rnn as _unrolled
from weft.tf1.reduction import reduce_sum
from weft.tf1.train import learning_rate
from weft.tf1.variable.initializer import VarianceScaling, xavier_initializer

Regularizer = Callable[[Any], Any]


def _l1_regularizer(scale: float, scope: str | None = None) -> Regularizer:
    """scale * sum(abs(weights)), as a regularizer for `get_variable`."""

    def regularizer(weights: Any) -> Any:
        with name_scope(scope, "l1_regularizer", [weights]):
            return scale * reduce_sum(arithmetic.abs(convert_to_tensor(weights)))

    return regularizer


def _l2_regularizer(scale: float, scope: str | None = None) -> Regularizer:
    """scale * sum(weights ** 2) / 2, as a regularizer for `get_variable`."""

    def regularizer(weights: Any) -> Any:
        with name_scope(scope, "l2_regularizer", [weights]):
            return scale * activation.l2_loss(weights)

    return regularizer


def _variance_scaling_initializer(
    factor: float = 2.0, mode: str = "FAN_IN", uniform: bool = False, seed: int | None = None,
    dtype: Any = "float32",
) -> VarianceScaling:  # fmt: skip
    """He's initializer by default, with contrib's arguments."""
    distribution = "uniform" if uniform else "truncated_normal"
    return VarianceScaling(factor, mode.lower(), distribution, seed, dtype)


class framework:
    """`tf.contrib.framework`: the global step."""

    create_global_step = staticmethod(learning_rate.create_global_step)
    get_global_step = staticmethod(learning_rate.get_global_step)
    get_or_create_global_step = staticmethod(learning_rate.get_or_create_global_step)


class layers:
    """`tf.contrib.layers`: initializers, regularizers, flatten."""

    flatten = staticmethod(_flatten)
    l1_regularizer = staticmethod(_l1_regularizer)
    l2_regularizer = staticmethod(_l2_regularizer)
    variance_scaling_initializer = staticmethod(_variance_scaling_initializer)
    xavier_initializer = staticmethod(xavier_initializer)
    xavier_initializer_conv2d = staticmethod(xavier_initializer)


class staging:
    """`tf.contrib.staging`: areas between steps."""

    StagingArea = _StagingArea


class rnn:
    """`tf.contrib.rnn`: cells and unrolled networks."""

    RNNCell = rnn_cell.RNNCell
    BasicRNNCell = rnn_cell.BasicRNNCell
    BasicLSTMCell = rnn_cell.BasicLSTMCell
    LSTMCell = rnn_cell.LSTMCell
    LSTMStateTuple = rnn_cell.LSTMStateTuple
    GRUCell = rnn_cell.GRUCell
    MultiRNNCell = rnn_cell.MultiRNNCell
    DropoutWrapper = rnn_cell.DropoutWrapper
    ResidualWrapper = rnn_cell.ResidualWrapper
    DeviceWrapper = rnn_cell.DeviceWrapper
    static_rnn = staticmethod(_unrolled.static_rnn)
    static_bidirectional_rnn = staticmethod(_unrolled.static_bidirectional_rnn)
