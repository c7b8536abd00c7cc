"""Layers as functions: what `weft.nn` computes, with every weight an argument."""

from __future__ import annotations

from weft.nn.functional.plain import *  # noqa: F403
from weft.nn.functional.plain import __all__ as __all__
from weft.ops.refusal import guard

guard(globals())
