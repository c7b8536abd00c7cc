"""A rank that `tools/attack/ranks.py` starts: trains forever, with the given watchdog."""

from __future__ import annotations

import os
import sys

import weft as wf
import weft.distributed as dist
from weft.transport.supervisor import mapped

print(f"pid {os.environ['PMI_RANK']} {os.getpid()}", flush=True)
dist.init_process_group(timeout=float(sys.argv[1]))
print("memory", *mapped(os.getpid()), flush=True)
wf.manual_seed(0)
net = wf.nn.Sequential(wf.nn.Linear(64, 64), wf.nn.ReLU(), wf.nn.Linear(64, 1))
model = wf.nn.parallel.DistributedDataParallel(net, bucket_cap_mb=0.01)
optimizer = wf.optim.SGD(model.parameters(), lr=0.01)
x = wf.ones(8, 64)
print("ready", flush=True)
while True:
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
    total = wf.ones(3)
    dist.all_reduce(total)
