"""Tools for parameters and gradients, and for sequences of different lengths."""

from weft import exports
from weft.nn.utils import parametrizations as parametrizations
from weft.nn.utils import parametrize as parametrize
from weft.nn.utils import prune as prune
from weft.nn.utils import rnn as rnn
from weft.nn.utils import stateless as stateless
from weft.nn.utils.fresh import skip_init as skip_init
from weft.nn.utils.fusion import *
from weft.nn.utils.gradient import *
from weft.nn.utils.prefix import (
    consume_prefix_in_state_dict_if_present as consume_prefix_in_state_dict_if_present,
)
from weft.nn.utils.vector import *
from weft.nn.utils.weight import *
from weft.ops.refusal import guard

exports.gather(globals(), "parametrizations", "parametrize", "prune", "rnn", "stateless")
guard(globals())
