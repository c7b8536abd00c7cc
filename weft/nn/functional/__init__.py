"""Layers as functions: what `weft.nn` computes, with all weights as arguments."""

from __future__ import annotations

from weft.nn.functional.plain import *
from weft.nn.functional.plain import __all__ as __all__
from weft.ops.refusal import guard

guard(globals())
