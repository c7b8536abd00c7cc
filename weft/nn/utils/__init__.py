"""Tools for parameters and gradients, and for sequences of different lengths."""

from weft import exports
from weft.nn.utils import parametrizations, parametrize, prune, rnn, stateless
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
