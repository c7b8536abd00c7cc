"""Runs the listed programs: `python -m tools.programs FOLDER`.

Programs lie in FOLDER/OWNER+NAME, and are fetched there if they do not. Each runs in a copy, under
Weft, then under its own library, if that is installed: `--framework torch`, `tensorflow` (whose
`compat.v1` of TensorFlow 2 it is then) or `jax`. Results are written to FOLDER/weft.json and so on;
`python -m tools.programs.table FOLDER` writes the page.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import re
import resource
import shlex
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SECONDS = 400
"""The limit of a program."""
KINDS = {
    "torch": ("torch", "lightning", "lightning2"),
    "tensorflow": (
        "TensorFlow 1", "tf.keras", "TensorFlow 1, second draw", "tf.keras, second draw",
    ),
    "jax": ("jax", "jax2", "jax3", "jax4", "jax5", "jax6", "jax7"),
}  # fmt: skip
"""The programs that a framework is tried on."""


def programs(name: str = "programs") -> list[dict[str, Any]]:
    """A list: all were drawn but `later`, whose programs were chosen."""
    return json.loads((HERE / f"{name}.json").read_text())


def checkout(program: Mapping[str, Any], folder: Path) -> Path:
    """The folder of a program's repository at its commit."""
    place = folder / str(program["repository"]).replace("/", "+")
    if not place.exists():
        url = f"https://github.com/{program['repository']}"
        git = ["git", "-C", str(place)]
        subprocess.run(["git", "init", "-q", str(place)], check=True)
        subprocess.run([*git, "fetch", "-q", "--depth=1", url, program["commit"]], check=True)
        subprocess.run([*git, "checkout", "-q", "FETCH_HEAD"], check=True)
    return place


def prepared(program: Mapping[str, Any], place: Path, work: Path) -> Path:
    """A copy of a checkout with patches and made files; the folder to run in."""
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(place, work, symlinks=True, ignore=shutil.ignore_patterns(".git"))
    script = work / program["script"]
    for file, before, after in program.get("patch", ()):
        path = script.parent / file
        path = path if path.exists() else work / file
        text = path.read_text()
        if before not in text:
            raise ValueError(f"{path}: there is no {before!r}")
        path.write_text(text.replace(before, after))
    if script.suffix == ".ipynb":
        cells = json.loads(script.read_text())["cells"]
        code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
        lines = [
            line for cell in code for line in cell.splitlines() if line.strip()[:1] not in _SHELL
        ]
        script.with_suffix(".py").write_text("\n".join(lines))
    where = work / program["folder"] if "folder" in program else script.parent
    for name, text in program.get("made", {}).items():
        (where / name).write_text(text)
    if "prepare" in program:
        code = f"from pathlib import Path\n{program['prepare']}"
        subprocess.run([sys.executable, "-c", code], cwd=where, check=True)
    return where


_SHELL = ("%", "!")
"""What begins a line of a notebook that is not Python."""


def run(
    program: Mapping[str, Any], framework: str, folder: Path, asked: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """What became of a program.

    Args:
        asked: environment for what is measured; see `made/same_values.py`, `made/timed_steps.py`.
    """
    name = re.sub(r"\W+", "-", f"{program['repository']}-{program['script']}")
    work = folder / f"run-{framework}" / name
    where = prepared(program, checkout(program, folder), work)
    env = dict(os.environ) | program.get("environment", {})
    own = env.get("PYTHONPATH", "") if "PYTHONPATH" in program.get("environment", {}) else ""
    paths = [str(HERE / "made"), *([str(work / own)] if own else [])]
    if framework == "weft":
        paths.append(str(HERE.parent.parent))
    env |= {"PYTHONPATH": os.pathsep.join(paths), "MPLBACKEND": "agg", "WANDB_MODE": "offline"}
    env |= {"OMP_NUM_THREADS": "1", "WEFT_THREADS": "1"}
    env["PYTHONHASHSEED"] = "0"  # sets have the same order in both
    env |= asked or {}
    if framework in ("torch", "jax"):
        env["MADE_OPERATORS"] = "1"
    if program["kind"] in KINDS["tensorflow"]:
        env["MADE_OLD_NUMPY"] = "1"
    if program["kind"].startswith("tf.keras"):
        env["MADE_KERAS"] = "1"
    env["MADE_PEER"] = framework
    if framework == "tensorflow" and program["kind"].startswith("TensorFlow 1"):
        env["MADE_COMPAT"] = "1"
    command = [sys.executable, *(["-m", "weft", "run"] if framework == "weft" else [])]
    script = work / program["script"]
    script = script.with_suffix(".py") if script.suffix == ".ipynb" else script
    command += [str(script), *shlex.split(program.get("arguments", ""))]
    start, before = time.perf_counter(), _processor()
    try:
        done = subprocess.run(
            command, cwd=where, env=env, capture_output=True, text=True, errors="replace",
            timeout=SECONDS, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        code, out, err = done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired as error:
        code = -1
        out, err = [(t or b"").decode(errors="replace") for t in (error.stdout, error.stderr)]
    (work.parent / f"{name}.log").write_text(f"{out}\n{'=' * 80}\n{err}")
    return {
        "repository": program["repository"], "script": program["script"],
        "kind": program["kind"], "commit": program["commit"], "code": code,
        "seconds": round(time.perf_counter() - start, 1),
        "processor": round(_processor() - before, 1),
        "stop": "" if code == 0 else stop(err) if code > 0 else f"more than {SECONDS} s",
    }  # fmt: skip


def _processor() -> float:
    """Seconds of the processor that programs have taken; of one at a time (`--jobs 1`)."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def compared(program: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """How far a program's losses under Weft are from those under its own library, begun alike."""
    peer = "tensorflow" if program["kind"] in KINDS["tensorflow"] else "torch"
    name = f"{program['repository']}/{program['script']}"
    values = folder / "values" / re.sub(r"\W+", "-", name)
    shutil.rmtree(values, ignore_errors=True)
    values.mkdir(parents=True)
    asked = {"MADE_VALUES": str(values)}
    done = [run(program, framework, folder, asked) for framework in (peer, "weft")]
    theirs, ours = [
        json.loads(file.read_text()) if file.exists() else []
        for file in (values / f"losses-{peer}.json", values / "losses-weft.json")
    ]
    apart = [abs(a - b) / max(abs(a), 1e-6) for a, b in zip(theirs, ours, strict=False)]
    return {
        "code": max([each["code"] for each in done], key=abs), "losses": len(apart),
        "first": max(apart[:1], default=None), "all": max(apart, default=None),
        "seconds": round(sum([each["seconds"] for each in done]), 1), "stop": "",
        "runs": dict(zip((peer, "weft"), done, strict=True)),
        "repository": program["repository"], "script": program["script"],
    }  # fmt: skip


def longer(program: Mapping[str, Any]) -> dict[str, Any]:
    """A program whose steps are not cut: its own changes of what cuts them, and many epochs."""
    if program["kind"] in KINDS["jax"]:
        return dict(program) | {"patch": [*program.get("patch", ()), *program.get("longer", ())]}
    cut = {key: program[key] for key in ("arguments", "patch") if key in program}
    text = json.dumps(cut, ensure_ascii=False)
    for before, after in program.get("longer", ()):
        text = text.replace(json.dumps(before)[1:-1], json.dumps(after)[1:-1])
    return dict(program) | json.loads(_ONE_EPOCH.sub(r"\g<1>1000", text))


_ONE_EPOCH = re.compile(r"(epochs?'?(?:\s?[=:+]\s?| ))[12]\b", re.IGNORECASE)


def timed(
    program: Mapping[str, Any], folder: Path, steps: int = 200, seconds: int = 120, rounds: int = 3
) -> dict[str, Any]:
    """Processor time of a program's first steps under its own library and Weft, by turns; medians.

    Weft begins with an empty code cache each time. If the library takes more than the limit for
    the steps, both are given as many steps as it makes in that time. What takes more than a minute
    is run once. Programs for JAX are run to their end; the list says how many steps they make.
    """
    name = re.sub(r"\W+", "-", f"{program['repository']}-{program['script']}")
    program = longer(program)
    peer = next((k for k in ("tensorflow", "jax") if program["kind"] in KINDS[k]), "torch")
    steps = program.get("steps", steps)
    file = folder / f"times-{name}.json"
    found: dict[str, list[dict[str, Any]]] = {peer: [], "weft": []}
    stops: dict[str, str] = {}
    for _ in range(rounds):
        for framework, results in found.items():
            file.unlink(missing_ok=True)
            cache = folder / "cache-timed"
            shutil.rmtree(cache, ignore_errors=True)
            limit = seconds if framework == peer else 20 * seconds
            asked = {"MADE_STEPS": str(steps), "MADE_SECONDS": str(limit), "MADE_TIMED": peer}
            asked |= {"MADE_TIMES": str(file), "WEFT_CACHE": str(cache)}
            done = run(program, framework, folder, asked)
            if not file.exists() or (peer == "jax" and done["code"]):
                stops[framework] = done["stop"] or "no steps"
                break
            results.append(json.loads(file.read_text()))
            steps = min(steps, results[-1]["steps"])
        if stops or max([each["processor"] for each in (found[peer] + found["weft"])]) > 60:
            break
    file.unlink(missing_ok=True)
    result: dict[str, Any] = {"peer": peer, "steps": steps, "stops": stops, "all": found}
    result["pack"] = any((HERE.parent.parent / "weft" / "library" / "packs").glob("*.pack"))
    for framework, results in found.items():
        times = [each["processor"] for each in results]
        result[framework] = statistics.median(times) if times else None
    return result | {"repository": program["repository"], "script": program["script"]}


def stop(err: str) -> str:
    """The line that tells why a program stopped."""
    lines = [line for line in err.splitlines() if line.strip()]
    told = [
        line
        for line in lines
        if re.match(r"^([\w.]+(Error|Exception|Exit|Interrupt)\b|weft)", line)
    ]
    return (told or lines or ["no output"])[-1][:300]


def write(file: Path, result: Mapping[str, Any]) -> None:
    """Add a result to a file."""
    results = json.loads(file.read_text()) if file.exists() else {}
    results[f"{result['repository']}/{result['script']}"] = result
    file.write_text(json.dumps(results, indent=1))


def main() -> None:
    """Runs the programs."""
    parser = argparse.ArgumentParser(prog="python -m tools.programs")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--framework", choices=("weft", *KINDS), default="weft")
    parser.add_argument("--only", nargs="*", default=[""], help="parts of programs' names")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--list",
        choices=sorted([path.stem for path in HERE.glob("*.json")]),
        default="programs",
    )
    parser.add_argument("--values", action="store_true", help="compare losses with the original's")
    parser.add_argument("--steps", action="store_true", help="time 200 steps of both")
    parser.add_argument("--rounds", type=int, default=3, help="how often steps are timed")
    parser.add_argument("--seconds", type=int, default=120, help="the original's for its steps")
    given = parser.parse_args()
    folder = given.folder.resolve()
    names = [(p, f"{p['repository']}/{p['script']}") for p in programs(given.list)]
    wanted = [p for p, name in names if any(part in name for part in given.only)]
    if given.framework in KINDS:
        wanted = [p for p in wanted if p["kind"] in KINDS[given.framework]]
    if given.steps:
        timed_kinds = (*KINDS["torch"], "horovod", *KINDS["tensorflow"])
        wanted = [p for p in wanted if p["kind"] in timed_kinds or "steps" in p]
        compileall.compile_dir(HERE.parent.parent / "weft", quiet=2)  # as where it is installed
        for result in (timed(p, folder, 200, given.seconds, given.rounds) for p in wanted):
            write(folder / "steps.json", result)
            print(result[result["peer"]], result["weft"], result["steps"], end=" ")
            print(result["script"], result["stops"], flush=True)
        return
    file = folder / f"{'values' if given.values else given.framework}.json"
    with ThreadPoolExecutor(given.jobs) as pool:
        one = compared if given.values else lambda p, folder: run(p, given.framework, folder)
        for result in pool.map(lambda p: one(p, folder), wanted):
            for name, one_of in result.pop("runs", {}).items():
                write(folder / f"{name}.json", one_of)
            write(file, result)
            print(f"{result['code']:>3} {result['seconds']:>6} s", end=" ")
            print(f"({result.get('processor', 0)} s of the processor)", end="  ")
            print(f"{result['repository']}/", end="")
            print(f"{result['script']}  {result['stop']}", end="  ")
            print(*[result[key] for key in ("losses", "first", "all") if key in result], flush=True)


if __name__ == "__main__":
    main()
