"""`tf.app`: how a program starts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any


def run(main: Callable[[Any], Any] | None = None, argv: Sequence[str] | None = None) -> None:
    """Call `main(argv)` and exit with what it returns.

    Args:
        main: the function `main` of the program by default.
        argv: the command line by default.
    """
    chosen: Any = main or sys.modules["__main__"].main  # pyright: ignore[reportAttributeAccessIssue]
    sys.exit(chosen(sys.argv if argv is None else list(argv)))
