"""The arguments of `weft run`."""

from __future__ import annotations

import argparse
import sys

from weft.cli import torchrun
from weft.errors import ConfigError
from weft.mirror import table
from weft.mirror.check import report
from weft.mirror.program import run
from weft.mirror.tensorflow_version import version_for


def declare(one: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    one.add_argument(
        "--check", action="store_true",
        help="run nothing: list the names that SCRIPT... and the modules beside them use and Weft "
        "lacks; the exit status is 1 if there are any",
    )  # fmt: skip
    one.add_argument(
        "--with", dest="packages", action="append", default=[], metavar="PACKAGE",
        help="with --check: also look into an installed package",
    )  # fmt: skip
    one.add_argument(
        "--tensorflow", type=int, choices=(1, 2), default=None,
        help="the version of TensorFlow that SCRIPT is for; by default its text tells",
    )  # fmt: skip
    one.add_argument("-m", dest="module", action="store_true", help="SCRIPT is a module's name")
    one.add_argument(
        "script",
        metavar="SCRIPT",
        help="a program for PyTorch, Lightning, Horovod, TensorFlow, or JAX",
    )
    one.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="its arguments")
    one.set_defaults(run=_run)


def _run(given: argparse.Namespace) -> int:
    if given.check:
        version = given.tensorflow or version_for(given.script, given.module)
        table.use_tensorflow(version)
        return report([given.script, *given.arguments], given.packages, given.module, sys.stdout)
    if given.packages:
        raise ConfigError("run: expected --with beside --check, got it alone")
    if given.module and given.script in torchrun.MODULES:
        return torchrun.run(given.arguments)
    return run(given.script, given.arguments, given.module, given.tensorflow)
