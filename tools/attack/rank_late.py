"""A rank that `tools/attack/crowds.py` starts: late at the start and at its first call."""

from __future__ import annotations

import os
import time

import numpy as np

import weft as wf
import weft.distributed as dist
from weft.transport.supervisor import mapped

rank = int(os.environ["PMI_RANK"])
random = np.random.default_rng([int(os.environ["SEED_OF_CASE"]), rank])
time.sleep(random.uniform(0, 2))
dist.init_process_group(timeout=200)
print("memory", *mapped(os.getpid()), flush=True)
time.sleep(random.choice([0.0, 0.1, 0.5]))
model = wf.nn.parallel.DistributedDataParallel(wf.nn.Linear(4, 1))
total = wf.ones(3)
dist.all_reduce(total)
assert total.tolist() == [dist.get_world_size()] * 3
print("ready", flush=True)
