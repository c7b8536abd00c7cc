"""One network under one framework, in this process: `python -m tools.ports.side torch|weft ORDER`.

The first process writes initial values, outputs and gradients; the second loads the values and
writes its own results. All numbers are double precision, where rounding cannot hide a difference.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

SEED = 0


@dataclass(frozen=True)
class Order:
    """What to run.

    Attributes:
        network: a Python expression that gives a module.
        inputs: `[NAME=]SHAPE[:N]` for each argument: normal numbers, or whole ones below N.
        folder: where the arrays are exchanged.
    """

    network: str
    inputs: tuple[str, ...]
    folder: str


def made(expression: str) -> Any:
    """The value of an expression; packages that it names are imported, `a.b.C` as far as possible.

    Raises:
        ImportError: there is no such package.
    """
    names: dict[str, Any] = {}
    code = compile(expression, "<network>", "eval")
    for name in code.co_names:
        for path in paths(expression, name):
            try:
                importlib.import_module(path)
            except ModuleNotFoundError as error:
                if error.name != path:
                    raise
        if name in sys.modules:
            names[name] = sys.modules[name]
        elif expression.startswith(f"{name}."):
            raise ImportError(f"there is no package {name}")
    return eval(code, names)


def paths(expression: str, name: str) -> list[str]:
    """Dotted names in an expression that begin with `name`: each as far as it may be modules."""
    parts = expression.replace("(", " ").replace(",", " ").replace("=", " ").replace(")", " ")
    found: list[str] = []
    for word in parts.split():
        pieces = word.split(".")
        if pieces[0] == name:
            found += [".".join(pieces[:n]) for n in range(1, len(pieces))]
    return list(dict.fromkeys(found))


def arguments(specified: tuple[str, ...]) -> tuple[list[Any], dict[str, Any]]:
    """Arrays for a call, by position and by name."""
    random = np.random.default_rng(SEED)
    given: list[Any] = []
    named: dict[str, Any] = {}
    for text in specified:
        name, _, spec = text.rpartition("=")
        sizes, _, below = spec.partition(":")
        shape = tuple(int(n) for n in sizes.split(","))
        array = random.integers(0, int(below), shape) if below else random.standard_normal(shape)
        if name:
            named[name] = array
        else:
            given.append(array)
    return given, named


def floating(value: Any, torch: Any) -> Iterator[Any]:
    """The floating-point tensors of an output, in order."""
    if isinstance(value, torch.Tensor):
        if value.dtype.is_floating_point:
            yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from floating(part, torch)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from floating(part, torch)


def results(network: Any, order: Order, torch: Any) -> dict[str, Any]:
    """Outputs in both modes, and gradients of their means and mean squares in training."""
    given, named = arguments(order.inputs)
    given = [torch.from_numpy(x) for x in given]
    named = {name: torch.from_numpy(x) for name, x in named.items()}
    network.eval()
    with torch.no_grad():
        outputs = list(floating(network(*given, **named), torch))
    found = {f"output {i}": y.numpy() for i, y in enumerate(outputs)}
    network.train()
    for module in network.modules():
        if type(module).__name__.startswith(("Drop", "StochasticDepth")):
            module.eval()  # random layers differ between frameworks
    outputs = list(floating(network(*given, **named), torch))
    total: Any = sum(y.mean() + (y**2).mean() for y in outputs)
    total.backward()
    found |= {f"output {i} in training": y.detach().numpy() for i, y in enumerate(outputs)}
    for name, parameter in network.named_parameters():
        if parameter.grad is not None:
            found[f"gradient {name}"] = parameter.grad.numpy()
    return found


def network_of(framework: str, expression: str, folder: Path, double: bool = True) -> Any:
    """The network in this process, with the same initial values under both frameworks.

    Args:
        folder: where PyTorch's process leaves the values, and Weft's takes them from.
        double: in double precision.

    Returns:
        The module `torch`, or Weft in its place, and the network.
    """
    sys.path.insert(0, "")
    if framework == "weft":
        importlib.import_module("weft.as_torch")  # PyTorch's process has no Weft
    import torch  # noqa: PLC0415 - Weft, where it is installed as such

    torch.manual_seed(SEED)
    network = made(expression)
    network = network.double() if double else network
    if framework == "weft":
        values = network.state_dict()
        with np.load(folder / "values.npz") as saved:
            values.update({name: torch.from_numpy(saved[name]) for name in saved.files})
        network.load_state_dict(values)
    else:
        state = {name: x.numpy() for name, x in network.state_dict().items()}
        np.savez(folder / "values.npz", **state)
    return torch, network


def run(framework: str, order: Order) -> None:
    """Builds the network, exchanges its initial values, writes its results."""
    warnings.simplefilter("ignore")
    folder = Path(order.folder)
    torch, network = network_of(framework, order.network, folder)
    start = time.perf_counter()
    found = results(network, order, torch)
    seconds = time.perf_counter() - start
    np.savez(folder / f"{framework}.npz", **found)
    count = sum(p.numel() for p in network.parameters())
    summary = {"parameters": count, "seconds": seconds}
    (folder / f"{framework}.json").write_text(json.dumps(summary))


if __name__ == "__main__":
    given = json.loads(sys.argv[2])
    run(sys.argv[1], Order(given["network"], tuple(given["inputs"]), given["folder"]))
