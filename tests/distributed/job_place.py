"""Says where each rank is; run by `weft launch`."""

import json
import os

import weft as wf
import weft.distributed as dist
import weft.horovod.torch as hvd

dist.init_process_group(timeout=30)
hvd.init()
x = wf.ones(1)
dist.all_reduce(x)
found = {
    "rank": dist.get_rank(), "sum": x.item(), "host": os.environ.get("REACHED_HOST"),
    "local": [hvd.local_rank(), hvd.local_size()], "threads": wf.config.get("threads"),
    "cores": sorted(os.sched_getaffinity(0)), "told": os.environ.get("TOLD"),
}  # fmt: skip
names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
found["as torchrun"] = [int(os.environ[name]) for name in names]
print(json.dumps(found))
