"""What the scripts share: the same initial values under both frameworks, and what they report.

A script is a program for PyTorch: `python SCRIPT` runs it with PyTorch, `weft run SCRIPT` with
Weft. PyTorch's run leaves arrays in the folder `$PORTS`, from which Weft's begins.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

FOLDER = Path(os.environ["PORTS"])
WEFT = "weft" in sys.modules
START = time.process_time()


def begin(network: Any, name: str) -> Any:
    """Give a network the initial values of PyTorch's run."""
    path = FOLDER / f"{name}.npz"
    state = network.state_dict()
    if not WEFT:
        np.savez(path, **{key: value.numpy() for key, value in state.items()})
        return network
    with np.load(path) as saved:
        network.load_state_dict({key: torch.from_numpy(saved[key]) for key in state})
    return network


def report(**values: Any) -> None:
    """Write what a script found, as its last line: numbers, texts and lists of them."""
    seconds = time.process_time() - START
    print(json.dumps({"seconds": round(seconds, 2), **values}))
