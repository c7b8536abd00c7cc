"""Routines that an earlier process has left on disk compute the same bits."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import weft as wf
from weft import nn
from weft.eager.record.listing import call_routine

count = [0]
before = call_routine._written

def written(*args):
    count[0] += 1
    return before(*args)

call_routine._written = written
wf.manual_seed(0)
model = nn.Sequential(nn.Linear(5, 8, bias=False), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 3))
optimizer = wf.optim.AdamW(model.parameters(), lr=0.1)
found = []
for n in (4, 7, 9):
    x = wf.arange(5.0 * n).reshape(n, 5)
    loss = nn.functional.cross_entropy(model(x / 7)[1:, :], wf.arange(n - 1) % 3)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    found += [loss.item().hex(), (x[:, 1:3] @ x[:2, :3].T[:2]).cumsum(0).sum().item().hex()]
found += [p.detach().sum().item().hex() for p in model.parameters()]
print(*found)
print(count[0])
"""


def lines_of(folder: Path) -> list[str]:
    environment = {**os.environ, "WEFT_CACHE": str(folder), "WEFT_WARM": "0"}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return done.stdout.splitlines()


def test_the_next_process_writes_no_routine_and_has_the_same_bits(tmp_path: Path):
    values, written = lines_of(tmp_path)
    assert int(written) > 20
    assert lines_of(tmp_path) == [values, "0"]
