"""The command line: `weft run`, `warm`, `bench`, `launch`, `checkpoint`, `cluster`."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import Final

from weft.cli.argument import sentence
from weft.errors import WeftError
from weft.version import __version__

COMMANDS: Final = {
    "bench": (
        "weft.cli.bench_command",
        "measure the training speed of a well-known network",
    ),
    "run": (
        "weft.cli.run_command",
        "run a program for PyTorch, Lightning, Horovod, TensorFlow or JAX as it is",
    ),
    "warm": (
        "weft.cli.warm_command",
        "make the kernel library for this machine now",
    ),
    "launch": (
        "weft.cli.launch_command",
        "start several processes of one program, which train together",
    ),
    "checkpoint": (
        "weft.cli.checkpoint",
        "look into checkpoints: Weft's, safetensors, PyTorch's, TensorFlow's",
    ),
    "cluster": (
        "weft.cli.cluster_command",
        "look at the tasks of a cluster",
    ),
}
"""By name: the module whose `declare` adds the arguments, and a description.

Only the given command's module is loaded: `weft launch` starts without what training needs.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit code."""
    texts = sys.argv[1:] if arguments is None else list(arguments)
    parser = _parser(texts)
    given = parser.parse_args(texts)
    if given.command is None:
        parser.print_help()
        return 0
    try:
        return given.run(given)
    except (WeftError, OSError) as error:
        text = str(error).removeprefix(f"{given.command}: ")
        print(f"weft {given.command}: {text}", file=sys.stderr)
        return 2


def _parser(texts: Sequence[str]) -> argparse.ArgumentParser:
    """The parser of all commands, complete for the given one."""
    parser = argparse.ArgumentParser(prog="weft", description="Weft's commands.")
    parser.add_argument("--version", action="version", version=f"weft {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, (module, about) in COMMANDS.items():
        one = commands.add_parser(name, help=about, description=sentence(about))
        if name in texts[:1]:
            importlib.import_module(module).declare(one)
    return parser
