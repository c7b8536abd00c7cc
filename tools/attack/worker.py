"""Runs some cases of one attack in this process, and writes each verdict when it is known.

Started by `runner`, with one argument: a JSON object of the fields of `Order`.
"""

from __future__ import annotations

import faulthandler
import importlib
import json
import resource
import sys
import traceback
import zlib
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tools.attack.verdict import OTHER, Case, Verdict

MARK = "--- case "  # begins a line before what a case says
TOLD = 1500  # characters of an error's traceback


@dataclass(frozen=True)
class Order:
    """What a worker is to run.

    Attributes:
        attack: its name.
        seed: of the whole run.
        cases: numbers of cases, in order.
        out: a file to which rows are appended, an object a line.
        memory: bytes that the process may map.
        plant: `module:function` that is called first; tests plant faults so.
    """

    attack: str
    seed: int
    cases: tuple[int, ...]
    out: str
    memory: int
    plant: str = ""


def generator(order: Order, case: int) -> np.random.Generator:
    """Random numbers of one case, independent of the other cases."""
    return np.random.default_rng([order.seed, zlib.crc32(order.attack.encode()), case])


def call(path: str) -> Any:
    """The result of `module:function`, called without arguments."""
    module, _, function = path.partition(":")
    return getattr(importlib.import_module(module), function)()


def judged(case: Case, random: np.random.Generator) -> Verdict:
    """The verdict of a case; an error in the attack itself is one, too."""
    try:
        return case(random)
    except BaseException as error:
        text = "".join(traceback.format_exception(error))[-TOLD:]
        return Verdict(OTHER, f"the attack failed: {type(error).__name__}", text)


def main(order: Order) -> None:
    """Runs the cases in the working directory, which no one else uses."""
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (order.memory, order.memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if order.plant:
        call(order.plant)
    case: Case = call(f"tools.attack.{order.attack}:begin")
    with open(order.out, "a", encoding="utf-8") as out:
        for number in order.cases:
            print(json.dumps({"start": number}), file=out, flush=True)
            print(f"{MARK}{number}", file=sys.stderr, flush=True)
            verdict = judged(case, generator(order, number))
            print(json.dumps({"case": number, **asdict(verdict)}), file=out, flush=True)


if __name__ == "__main__":
    fields: dict[str, Any] = json.loads(sys.argv[1])
    fields["cases"] = tuple(fields["cases"])
    main(Order(**fields))
