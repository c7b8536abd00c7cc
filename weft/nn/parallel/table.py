"""Row-sparse gradient exchange: for tables of which each rank looks up a few rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.distributed.recorded import settle
from weft.eager.record.state import trace
from weft.eager.tensor.lookup import is_large, looked_up, pays
from weft.transport import collective
from weft.transport.group import Group


class Tables:
    """Which parameters of a model are tables, and how many rows of them ranks look up.

    The ranks agree on the tables in the first backward pass; other models exchange nothing.
    """

    def __init__(self, params: Sequence[Any], group: Group) -> None:
        self._params = [p for p in params if p.ndim and is_large(p)]
        self._group = group
        self._agreed = False

    def counts(self) -> dict[int, int]:
        """The maximum number of rows over ranks, by id of each table worth exchanging as rows.

        All ranks of the group call it after a backward pass.
        """
        if not self._params or trace.now.depth:
            return {}
        found: Any = {}
        rows = [
            0 if p.grad is None else looked_up(p.lazy, p.grad.lazy, found) for p in self._params
        ]
        if not self._agreed:
            self._agreed = True
            tables = self._most(rows) > 0
            pairs = list(zip(self._params, rows, tables, strict=True))
            self._params = [p for p, _, table in pairs if table]
            rows = [n for _, n, table in pairs if table]
            if not rows:
                return {}
        most = [n or np.iinfo(np.int64).max for n in rows]  # none: the gradient is dense
        size = self._group.size
        counts = self._most(most).tolist()
        return {id(p): n for p, n in zip(self._params, counts, strict=True) if pays(p, n * size)}

    def _most(self, numbers: Sequence[int]) -> Any:
        """The maximum over ranks, for each table."""
        settle()
        found = np.array(numbers, np.int64)
        what = f"rows of {len(found)} tables"
        collective.all_reduce(self._group, found, found, "max", what)
        return found
