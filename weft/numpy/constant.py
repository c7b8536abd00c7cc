"""Mathematical constants."""

from __future__ import annotations

import math
from typing import Final

__all__ = ["e", "euler_gamma", "inf", "nan", "newaxis", "pi"]

e: Final = math.e
pi: Final = math.pi
inf: Final = math.inf
nan: Final = math.nan
euler_gamma: Final = 0.5772156649015329
newaxis: Final = None
