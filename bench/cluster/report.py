"""`python -m bench cluster [PART ...]`: each part in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

from bench import sections

PARTS = (
    "messages", "session", "null_step", "large_table", "partition", "tables", "embedding_bags",
    "replicas", "shards", "link",
)  # fmt: skip


def report(names: Sequence[str], plan: sections.Plan) -> None:
    """Measures the parts named, or all of them; `link`, which needs root, is the last."""
    del plan
    for name in names or PARTS:
        subprocess.run([sys.executable, "-m", f"bench.cluster.{name}"], check=True)
