"""`weft warm`."""

from __future__ import annotations

import argparse
import time

from weft.codegen.target import portable
from weft.library.warm import keep


def declare(one: argparse.ArgumentParser) -> None:
    """Adds no arguments: the machine and the knobs say what is made."""
    one.set_defaults(run=_run)


def _run(given: argparse.Namespace) -> int:
    start, target = time.monotonic(), portable()
    kept = keep(target)
    if kept.where is None:
        print(f"The kernel library for {target.cpu} has come with Weft.")
        return 0
    what = f"{kept.forms} forms, {kept.bytes / 1e6:.1f} MB, in {kept.where}"
    how = f"made in {time.monotonic() - start:.0f} s" if kept.is_new else "there already"
    print(f"The kernel library for {target.cpu}: {how}; {what}")
    return 0
