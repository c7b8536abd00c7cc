"""The command: `python -m tools.attack`, five hours on two cores; it exits with 1 on a finding."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools.attack.plan import ATTACKS, Attack
from tools.attack.report import as_json, findings, listed, table
from tools.attack.runner import Runner, Stopped
from tools.attack.state import Plan, State
from tools.attack.verdict import Row

FOLDER = Path("build/attack")  # of a whole run
Block = tuple[Attack, tuple[int, ...]]


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="python -m tools.attack", description=__doc__)
    made.add_argument("--seed", type=int, default=0, help="of all that is drawn")
    made.add_argument(
        "--only", action="append", choices=list(ATTACKS), help="this attack; may be repeated"
    )
    made.add_argument("--count", type=int, metavar="N", help="cases of each attack")
    made.add_argument("--minutes", type=float, metavar="M", help="begin nothing new after these")
    made.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    made.add_argument("--folder", type=Path, metavar="DIR", help="holds what has been found so far")
    made.add_argument("--resume", action="store_true", help="go on with the run in the folder")
    made.add_argument("--json", type=Path, metavar="FILE", help="write every finding there")
    made.add_argument(
        "--case", type=span, metavar="N[-M]", help="only these cases, of one attack, in one process"
    )
    return made


def span(text: str) -> tuple[int, ...]:
    """`7` or `3-7` as numbers.

    Raises:
        ArgumentTypeError: it is neither.
    """
    first, _, last = text.partition("-")
    try:
        return tuple(range(int(first), int(last or first) + 1))
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected 7 or 3-7, got {text!r}") from None


def blocks(state: State) -> list[Block]:
    """The remaining work, ordered so that all attacks finish at about the same time."""
    found: list[tuple[float, Block]] = []
    for name in state.plan.counts:
        attack, left = ATTACKS[name], state.left(name)
        parts = [tuple(left[i : i + attack.block]) for i in range(0, len(left), attack.block)]
        found += [((i + 0.5) / len(parts), (attack, part)) for i, part in enumerate(parts)]
    return [block for _, block in sorted(found, key=lambda item: item[0])]


def run(state: State, runner: Runner, jobs: int, minutes: float | None) -> bool:
    """Runs the remaining work; returns whether it finished."""
    deadline = None if minutes is None else time.monotonic() + 60 * minutes
    late = False

    def one(block: Block) -> None:
        nonlocal late
        if runner.stop.is_set():
            return
        if deadline is not None and time.monotonic() > deadline:
            late = True
            return
        for row in runner.block(*block):
            state.add(row)

    with ThreadPoolExecutor(jobs) as pool:
        try:
            for done in [pool.submit(one, block) for block in blocks(state)]:
                done.result()
        except (KeyboardInterrupt, SystemExit, Stopped):
            runner.stop.set()
    return not late and not runner.stop.is_set()


def rerun(runner: Runner, attack: Attack, cases: tuple[int, ...]) -> list[Row]:
    """The rows of given cases."""
    return list(runner.block(attack, cases))


def main(arguments: list[str] | None = None, plant: str = "", seconds: float | None = None) -> int:
    """Runs, prints the table and the findings; returns 1 if there are findings, 2 if stopped.

    Args:
        arguments: the command line's.
        plant, seconds: see `Runner`; for tests.
    """
    given = parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    names = given.only or list(ATTACKS)
    if given.case:
        if len(names) != 1:
            sys.exit("--case: expected --only with one attack")
        rows = rerun(Runner(given.seed, plant, seconds), ATTACKS[names[0]], given.case)
        plan, whole = Plan(given.seed, {names[0]: len(given.case)}), True
    else:
        state = _state(given, names)
        whole = run(state, Runner(state.plan.seed, plant, seconds), given.jobs, given.minutes)
        rows, plan = state.rows, state.plan
        print(f"the run is in {state.folder}", file=sys.stderr)
    if given.json:
        given.json.write_text(json.dumps(as_json(plan, rows), indent=1) + "\n")
    print(table(plan, rows))
    if text := listed(rows, plan.seed):
        print("\n" + text)
    return 1 if findings(rows) else 0 if whole else 2


def _state(given: argparse.Namespace, names: list[str]) -> State:
    usual = given.resume or not given.only
    folder = given.folder or (FOLDER if usual else Path(tempfile.mkdtemp(prefix="weft-attack-")))
    if given.resume:
        return State.resume(folder)
    counts = {name: given.count or ATTACKS[name].count for name in names}
    return State.begin(folder, Plan(given.seed, counts))


if __name__ == "__main__":
    sys.exit(main())
