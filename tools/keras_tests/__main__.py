"""Runs Keras 3's own tests of layers and operations: `python -m tools.keras_tests CHECKOUT FOLDER`.

CHECKOUT is a checkout of github.com/keras-team/keras, best at the tag of the version that is
installed. Its torch backend runs on Weft, or with `--framework torch` on PyTorch. Outcomes are
written to FOLDER/weft.jsonl or FOLDER/torch.jsonl, a line each;
`python -m tools.keras_tests.table FOLDER` counts them and writes the page.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
GROUPS = ("keras/src/layers", "keras/src/ops")
CRASHES = 5
"""Processes that are started for a group whose tests end them."""


@dataclass(frozen=True)
class Options:
    """How tests are run.

    Attributes:
        checkout: Keras.
        out: the folder of outcomes.
        framework: `weft` or `torch`.
        seconds: the limit of a test's processor time.
    """

    checkout: Path
    out: Path
    framework: str
    seconds: float


def files(checkout: Path, parts: list[str]) -> dict[str, list[str]]:
    """By group, a folder or a large file: the test files whose names have one of the parts."""
    found: dict[str, list[str]] = {}
    for top in GROUPS:
        for path in sorted((checkout / top).rglob("*_test.py")):
            name = str(path.relative_to(checkout))
            if any(part in name for part in parts or [""]):
                large = "/ops/" in name or path.parent.name == "layers"
                group = name.removesuffix(".py") if large else str(Path(name).parent)
                found.setdefault(group.removeprefix("keras/src/").replace("/", "-"), []).append(
                    name
                )
    return found


def run(group: str, names: list[str], options: Options) -> None:
    """Run a group's tests, in a new process each time that one ends."""
    rows = options.out / f"{group}.jsonl"
    rows.write_text("")
    env = dict(os.environ) | {
        "KERAS_BACKEND": "torch", "OUTCOMES_FILE": str(rows),
        "OUTCOMES_SECONDS": str(options.seconds), "PYTHONPATH": f"{options.checkout}:{ROOT}",
        "OMP_NUM_THREADS": "1", "WEFT_THREADS": "1",
    }  # fmt: skip
    weft = ["-m", "weft", "run"] if options.framework == "weft" else []
    command = [sys.executable, *weft, "-m", "pytest", "-q", "-p", "tools.keras_tests.outcomes"]
    command += ["-p", "no:cacheprovider", "--no-header", "--tb=short", *names]
    for _ in range(CRASHES):
        with rows.with_suffix(".log").open("a") as log:
            code = subprocess.run(
                command, cwd=options.checkout, env=env, stdout=log, stderr=log, check=False
            ).returncode
        if 0 <= code <= 5:
            break


def main() -> None:
    """Runs the tests."""
    parser = argparse.ArgumentParser(prog="python -m tools.keras_tests", description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--framework", choices=("weft", "torch"), default="weft")
    parser.add_argument("--only", nargs="*", default=[], help="parts of files' names")
    parser.add_argument("--timeout", type=float, default=20.0, help="processor time of a test")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    out = given.folder.resolve() / given.framework
    out.mkdir(parents=True, exist_ok=True)
    options = Options(given.checkout.resolve(), out, given.framework, given.timeout)
    groups = files(options.checkout, given.only)
    with ThreadPoolExecutor(given.jobs) as pool:
        for group, _ in zip(
            groups, pool.map(lambda g: run(g, groups[g], options), groups), strict=True
        ):
            print(group, flush=True)


if __name__ == "__main__":
    main()
