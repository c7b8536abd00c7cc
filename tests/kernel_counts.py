"""How often kernels of lists run, by operation."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from weft.eager.record.pending import state
from weft.library import workspace
from weft.library.case import case_at


def counted(patch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts the nodes of all launches from now on, without shortcuts that other tests made."""
    counts: Counter[str] = Counter()
    run = workspace.Workspace.run

    def counting(self: workspace.Workspace, first: int, last: int) -> Any:
        for _, part, case, variant in self.origins()[first:last]:
            group: Any = case_at(case).routine.parts[part] if variant else None
            counts.update([n.op for n in group.group.nodes] if variant else [])
        return run(self, first, last)

    patch.setattr(workspace.Workspace, "run", counting)
    patch.setattr(state, "_shortcut", [lambda _: False])
    return counts
