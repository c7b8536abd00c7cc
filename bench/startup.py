"""Whole processes: what an import costs, and how long the first step of the perceptron takes."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile

FIRST_STEP = """
import time
import numpy as np
import bench.work.perceptron as work
import weft.tf1 as tf
start = time.perf_counter()
step = work.weft({threads})
step()
print(time.perf_counter() - start)
"""
IMPORT = """
import time
start = time.perf_counter()
import {module}
print(time.perf_counter() - start)
"""


def seconds(code: str, **environment: str) -> float:
    """What a fresh interpreter prints."""
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={**os.environ, "WEFT_WARM": "0", **environment},
    )  # fmt: skip
    return float(found.stdout)


def imports(rounds: int = 9) -> dict[str, float]:
    """Median seconds to import numpy and weft, in turns."""
    times: dict[str, list[float]] = {"numpy": [], "weft": []}
    for _ in range(rounds):
        for module, found in times.items():
            found.append(seconds(IMPORT.format(module=module)))
    return {module: statistics.median(found) for module, found in times.items()}


def first_steps(threads: int = 2, rounds: int = 5) -> dict[str, float]:
    """Median seconds from building the graph to the end of the first step."""
    times: dict[str, list[float]] = {"empty cache": [], "full cache": []}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            for found in times.values():
                found.append(seconds(FIRST_STEP.format(threads=threads), WEFT_CACHE=folder))
    return {state: statistics.median(found) for state, found in times.items()}
