"""Layers as functions: what `weft.nn` computes, with all weights as arguments."""

from __future__ import annotations

import sys

from weft import exports
from weft.nn.functional.activation import *
from weft.nn.functional.attention import *
from weft.nn.functional.classification import *
from weft.nn.functional.convolution import *
from weft.nn.functional.distance import *
from weft.nn.functional.dropout import *
from weft.nn.functional.embedding import *
from weft.nn.functional.fractional import *
from weft.nn.functional.grid import *
from weft.nn.functional.linear import *
from weft.nn.functional.loss import *
from weft.nn.functional.normalization import *
from weft.nn.functional.padding import *
from weft.nn.functional.pooling import *
from weft.nn.functional.sequence import *
from weft.nn.functional.softmax import *
from weft.nn.functional.vision import *
from weft.ops.refusal import guard

exports.gather(globals())
for _name in [name for name in sys.modules if name.startswith(f"{__name__}.")]:
    _part = vars(sys.modules[_name])
    if "__all__" in _part:
        guard(_part, __name__)  # layers import them from there
        globals().update({name: _part[name] for name in _part["__all__"] if name in globals()})
