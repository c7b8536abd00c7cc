"""Notices of what runs slower than it could, a line each."""

from __future__ import annotations

import warnings


def tell(text: str) -> None:
    """Warn without the line of source that a warning shows: it would be Weft's own."""
    warnings.warn_explicit(text, RuntimeWarning, "<weft>", 1)
