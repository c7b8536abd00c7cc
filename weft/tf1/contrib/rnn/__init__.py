"""`tf.contrib.rnn`: cells and unrolled networks."""

from weft import exports as _exports
from weft.tf1.contrib.rnn.cell import *
from weft.tf1.nn.rnn import static_bidirectional_rnn as static_bidirectional_rnn
from weft.tf1.nn.rnn import static_rnn as static_rnn
from weft.tf1.nn.rnn_cell import (
    BasicLSTMCell as BasicLSTMCell,
)
from weft.tf1.nn.rnn_cell import BasicRNNCell as BasicRNNCell
from weft.tf1.nn.rnn_cell import DeviceWrapper as DeviceWrapper
from weft.tf1.nn.rnn_cell import DropoutWrapper as DropoutWrapper
from weft.tf1.nn.rnn_cell import GRUCell as GRUCell
from weft.tf1.nn.rnn_cell import LSTMCell as LSTMCell
from weft.tf1.nn.rnn_cell import LSTMStateTuple as LSTMStateTuple
from weft.tf1.nn.rnn_cell import MultiRNNCell as MultiRNNCell
from weft.tf1.nn.rnn_cell import ResidualWrapper as ResidualWrapper
from weft.tf1.nn.rnn_cell import RNNCell as RNNCell

_exports.gather(globals())
