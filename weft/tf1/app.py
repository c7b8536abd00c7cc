"""`tf.app`: the start of a program."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any


def run(main: Callable[[Any], Any] | None = None, argv: Sequence[str] | None = None) -> None:
    """Call `main(argv)` and exit with its result.

    Args:
        main: by default the program's function `main`.
        argv: the command line by default.
    """
    chosen: Any = main or sys.modules["__main__"].main  # pyright: ignore[reportAttributeAccessIssue]
    sys.exit(chosen(sys.argv if argv is None else list(argv)))
