"""`tf.nn`: building blocks of neural networks."""

from weft import exports as _exports
from weft.tf1.elementwise.arithmetic import log_sigmoid as log_sigmoid
from weft.tf1.elementwise.arithmetic import sigmoid as sigmoid
from weft.tf1.elementwise.arithmetic import tanh as tanh
from weft.tf1.indexing.lookup import *
from weft.tf1.indexing.lookup_sparse import *
from weft.tf1.indexing.order import depth_to_space as depth_to_space
from weft.tf1.indexing.order import space_to_depth as space_to_depth
from weft.tf1.indexing.ranking import *
from weft.tf1.nn import rnn_cell as rnn_cell
from weft.tf1.nn.activation import *
from weft.tf1.nn.conv import *
from weft.tf1.nn.ctc import *
from weft.tf1.nn.normalization import *
from weft.tf1.nn.pooling import *
from weft.tf1.nn.raw_rnn import raw_rnn as raw_rnn
from weft.tf1.nn.rnn import *
from weft.tf1.nn.sampled_loss import *
from weft.tf1.random.candidate import *

max_pool2d = max_pool
avg_pool2d = avg_pool

_exports.gather(globals(), "rnn_cell")
