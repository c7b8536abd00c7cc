"""The command: `python -m tools.ports "timm.create_model('resnet26')" --input 2,3,64,64`."""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from tools.ports.side import Order

LIMIT = 1e-6  # of double precision's differences, relative to the largest element
SMALL = 1e-6  # of all gradients: what is smaller is rounding of something larger
Arrays = Mapping[str, np.ndarray[Any, Any]]


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="python -m tools.ports", description=__doc__)
    made.add_argument("network", help="an expression that gives a module")
    made.add_argument(
        "--input", action="append", default=[], type=specification, metavar="[NAME=]SHAPE[:N]",
        help="an argument of the call: normal numbers, or whole ones below N",
    )  # fmt: skip
    return made


def specification(text: str) -> str:
    """Checks the form of an `--input`.

    Raises:
        ArgumentTypeError: it is none.
    """
    if not re.fullmatch(r"(\w+=)?\d+(,\d+)*(:[1-9]\d*)?", text):
        raise argparse.ArgumentTypeError(f"expected one like 2,3,64,64 or ids=2,16:100, got {text}")
    return text


def answer(framework: str, order: Order) -> dict[str, Any]:
    """What one framework's process reports.

    Raises:
        SystemExit: it failed; with the end of its output.
    """
    command = [sys.executable, "-m", "tools.ports.side", framework, json.dumps(asdict(order))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{framework} failed:\n" + "\n".join(done.stderr.splitlines()[-12:]))
    return json.loads(Path(order.folder, f"{framework}.json").read_text())


def apart(wanted: Arrays, found: Arrays) -> dict[str, float]:
    """The largest difference of each array from the expected one; infinite if it is missing."""
    largest = max((_size(x) for name, x in wanted.items() if name.startswith("grad")), default=0.0)
    distances: dict[str, float] = {}
    for name in {**wanted, **found}:
        if name not in wanted or name not in found or wanted[name].shape != found[name].shape:
            distances[name] = np.inf
            continue
        least = SMALL * largest if name.startswith("grad") else 0.0
        difference = _size(wanted[name] - found[name])
        distances[name] = difference / max(_size(wanted[name]), least, 1e-300)
    return distances


def _size(array: np.ndarray[Any, Any]) -> float:
    return float(np.abs(array).max(initial=0.0))


def main(given: list[str] | None = None) -> int:
    """Runs both, prints the differences, and returns 1 if they are too large."""
    options = parser().parse_args(given)
    if importlib.util.find_spec("torch") is None:
        sys.exit("there is no PyTorch to compare with: pip install torch==2.13.0")
    with tempfile.TemporaryDirectory() as folder:
        order = Order(options.network, tuple(options.input), folder)
        summaries = [answer(framework, order) for framework in ("torch", "weft")]
        arrays: list[Arrays] = []
        for framework in ("torch", "weft"):
            with np.load(Path(folder, f"{framework}.npz")) as saved:
                arrays.append({name: saved[name] for name in saved.files})
    distances = apart(*arrays)
    gradients = {name: d for name, d in distances.items() if name.startswith("gradient ")}
    outputs = {name: d for name, d in distances.items() if name not in gradients}
    print(
        f"{options.network}: {summaries[0]['parameters']:,} parameters; {len(outputs)} outputs"
        f" within {max(outputs.values(), default=0.0):.0e}, {len(gradients)} gradients"
        f" within {max(gradients.values(), default=0.0):.0e}"
    )
    far = {name: d for name, d in distances.items() if not d <= LIMIT}
    for name, distance in list(far.items())[:10]:
        print(f"  {name}: {distance:.1e} apart")
    return 1 if far else 0


if __name__ == "__main__":
    sys.exit(main())
