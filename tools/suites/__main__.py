"""The command: `python -m tools.suites --pytorch DIR test_shape_ops nn/test_convolution`."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from dataclasses import asdict
from pathlib import Path

from tools.suites.report import failures, table
from tools.suites.runner import Options, Outcome, Stopped, run_file
from tools.suites.worker import GIBIBYTE

TESTS = {"pytorch": "test", "autograd": "tests"}  # folders of the tests in their checkouts


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="python -m tools.suites", description=__doc__)
    suite = made.add_mutually_exclusive_group(required=True)
    for name in TESTS:
        suite.add_argument(f"--{name}", metavar="DIR", type=Path, help="its checkout")
    made.add_argument("names", nargs="*", metavar="NAME", help="test files, without .py; or all")
    made.add_argument("-k", dest="keyword", default="", metavar="EXPR", help="only tests like this")
    made.add_argument("-x", dest="first_only", action="store_true", help="stop at a failure")
    made.add_argument(
        "--timeout", type=float, default=60.0, metavar="S", help="processor time a test"
    )
    made.add_argument("--memory", type=float, default=8.0, metavar="GIB", help="of a process")
    made.add_argument("--json", type=Path, metavar="FILE", help="write every outcome there")
    made.add_argument("--list-failures", action="store_true", help="print what failed, and why")
    return made


def files(folder: Path, names: list[str]) -> list[Path]:
    """The test files of these names.

    Raises:
        SystemExit: there is no such file.
    """
    found = [folder / f"{name.removesuffix('.py')}.py" for name in names]
    for file in found:
        if not file.exists():
            sys.exit(f"there is no {file}: is {folder.parent} a checkout?")
    return found or sorted(folder.glob("test_*.py"))


def main(arguments: list[str] | None = None) -> int:
    """Runs, prints the figures, and returns 1 if a test in scope failed or has not run."""
    given = parser().parse_args(arguments)
    suite = next(name for name in TESTS if getattr(given, name) is not None)
    folder: Path = getattr(given, suite).resolve()
    options = Options(given.keyword, given.first_only, given.timeout, int(given.memory * GIBIBYTE))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # which ends the worker as well
    outcomes: list[Outcome] = []
    stopped = False
    for file in files(folder / TESTS[suite], given.names):
        try:
            outcomes += run_file(suite, folder, file, options)
        except Stopped as problem:
            outcomes += problem.outcomes
            stopped = True
            print(f"{file.stem}: {problem}; the others are not counted", file=sys.stderr)
        if given.json:
            given.json.write_text(json.dumps([asdict(o) for o in outcomes], indent=1) + "\n")
        if stopped:
            break
    failed = any(outcome.outcome == "failed" for outcome in outcomes)
    if given.list_failures and failed:
        print(failures(outcomes) + "\n")
    print(table(outcomes))
    return 1 if failed or stopped else 0


if __name__ == "__main__":
    sys.exit(main())
