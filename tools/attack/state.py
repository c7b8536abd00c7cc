"""The results of a run so far, in a folder, so that a stopped run can be resumed."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from tools.attack.verdict import Row

PLAN = "run.json"
ROWS = "rows.jsonl"


@dataclass(frozen=True)
class Plan:
    """The plan of a run: its seed, and the number of cases of each attack."""

    seed: int
    counts: Mapping[str, int]


class State:
    """The plan and the rows of a run; rows are written as they arrive."""

    def __init__(self, folder: Path, plan: Plan, rows: list[Row]) -> None:
        self.folder = folder
        self.plan = plan
        self.rows = rows
        self._lock = threading.Lock()

    @classmethod
    def begin(cls, folder: Path, plan: Plan) -> State:
        """A new run, which replaces the one in the folder."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ROWS).write_text("")
        (folder / PLAN).write_text(json.dumps(asdict(plan)) + "\n")
        return cls(folder, plan, [])

    @classmethod
    def resume(cls, folder: Path) -> State:
        """The run in the folder; a partially written row is run again.

        Raises:
            SystemExit: there is none.
        """
        try:
            plan = Plan(**json.loads((folder / PLAN).read_text()))
        except FileNotFoundError:
            raise SystemExit(f"there is no run in {folder} to resume") from None
        whole = [line for line in (folder / ROWS).read_text().splitlines(True) if line[-1] == "\n"]
        (folder / ROWS).write_text("".join(whole))
        return cls(folder, plan, [Row(**json.loads(line)) for line in whole])

    def add(self, row: Row) -> None:
        """Note a row."""
        with self._lock, (self.folder / ROWS).open("a", encoding="utf-8") as file:
            self.rows.append(row)
            file.write(json.dumps(asdict(row)) + "\n")

    def left(self, name: str) -> list[int]:
        """The cases of an attack that have not been run."""
        done = {row.case for row in self.rows if row.attack == name}
        return [case for case in range(self.plan.counts[name]) if case not in done]
