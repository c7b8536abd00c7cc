"""SciPy's names on arrays with gradients: linalg, signal, special functions, distributions."""

from __future__ import annotations

from weft.scipy import linalg as linalg
from weft.scipy import signal as signal
from weft.scipy import special as special
from weft.scipy import stats as stats
