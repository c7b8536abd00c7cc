"""`tf.app`: the start of a program."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from weft.tf1 import flags as flags


def run(main: Callable[[Any], Any] | None = None, argv: Sequence[str] | None = None) -> None:
    """Read the flags of the command line, call `main(argv)` and exit with what it returns.

    Args:
        main: the function `main` of the program by default.
        argv: the command line by default; `main` gets what is no flag of it.
    """
    chosen: Any = main or sys.modules["__main__"].main  # pyright: ignore[reportAttributeAccessIssue]
    sys.exit(chosen(flags.FLAGS(argv, known_only=True)))
