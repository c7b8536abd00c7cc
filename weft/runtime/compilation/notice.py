"""Warnings about what runs slower than it could, one line each."""

from __future__ import annotations

import warnings


def tell(text: str) -> None:
    """Warns without a source line, which would be one of Weft's own."""
    warnings.warn_explicit(text, RuntimeWarning, "<weft>", 1)
