"""Compares `generate` of transformers' models under PyTorch and Weft: text and speed.

`python -m tools.ports.generation "transformers.GPT2LMHeadModel(...)" --option num_beams=3`

Each framework has its own process and generates twice. The programs that Weft compiles are counted,
with a cache folder that is empty at first.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

from tools.ports.side import SEED, network_of

PROMPT = 5  # tokens


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="python -m tools.ports.generation", description=__doc__)
    made.add_argument("network", help="an expression that gives a model with generate")
    made.add_argument("--tokens", type=int, default=200, help="how many are added")
    made.add_argument("--rows", type=int, default=1, help="texts at a time")
    made.add_argument("--option", action="append", default=[], help="an argument: num_beams=3")
    made.add_argument("--side", nargs=2, help=argparse.SUPPRESS)
    return made


def side(framework: str, folder: Path, given: argparse.Namespace) -> dict[str, Any]:
    """A framework's text, and its processor time: milliseconds a token, both times."""
    warnings.simplefilter("ignore")
    torch, network = network_of(framework, given.network, folder, double=False)
    network.eval()
    torch.manual_seed(SEED)
    most = network.config.vocab_size
    ids = torch.tensor([[(7 * i + 3 * r) % most for i in range(PROMPT)] for r in range(given.rows)])
    options: dict[str, Any] = {"do_sample": False, "pad_token_id": 0, "eos_token_id": None}
    options |= {k: _literal(v) for k, v in (x.split("=", 1) for x in given.option)}
    times: list[float] = []
    texts: list[Any] = []
    for _ in range(2):
        start = time.process_time()
        found = network.generate(ids, max_new_tokens=given.tokens, **options)
        texts.append(found.tolist())
        times.append((time.process_time() - start) / given.tokens * 1e3)
    return {"text": texts[0], "again": texts[1], "ms": times}


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text


def answer(framework: str, folder: str, arguments: list[str]) -> tuple[dict[str, Any], int]:
    """What a framework's process reports, and how many programs it compiled.

    Raises:
        SystemExit: it failed; with the end of its output.
    """
    command = [sys.executable, "-m", "tools.ports.generation", *arguments]
    # One thread each: threads that wait for each other would count.
    cache = {"WEFT_CACHE": str(Path(folder, "cache")), "WEFT_DEBUG": "1", "WEFT_THREADS": "1"}
    cache["OMP_NUM_THREADS"] = "1"
    done = subprocess.run(
        [*command, "--side", framework, folder], capture_output=True, text=True, check=False,
        env={**os.environ, **cache},
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"{framework} failed:\n" + "\n".join(done.stderr.splitlines()[-12:]))
    compiled = [x for x in done.stderr.splitlines() if x.startswith("# weft: compiled")]
    return json.loads(done.stdout.splitlines()[-1]), len(compiled)


def main(arguments: list[str]) -> int:
    """Runs both, prints the results; returns 1 if deterministic texts differ."""
    given = parser().parse_args(arguments)
    if given.side is not None:
        print(json.dumps(side(given.side[0], Path(given.side[1]), given)))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "cache").mkdir(mode=0o700)
        torch, _ = answer("torch", folder, arguments)
        weft, count = answer("weft", folder, arguments)
    same = torch["text"] == weft["text"] == weft["again"]
    drawn = any("do_sample=True" in x for x in given.option)
    first, again = weft["ms"]
    print(
        f"{given.tokens} tokens twice: {count} programs compiled; {first:.1f} ms of processor time"
        f" a token, then {again:.1f}; PyTorch {torch['ms'][1]:.1f};"
        f" {'drawn' if drawn else 'the same text' if same else 'OTHER TEXT'}"
    )
    return 0 if same or drawn else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
