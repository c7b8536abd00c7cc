"""A job that goes wrong, in the way that its argument says; run by `weft launch`."""

import os
import signal
import sys
import time

import weft as wf
import weft.distributed as dist

dist.init_process_group(timeout=2)
rank, way = dist.get_rank(), sys.argv[1]
dist.barrier()
if rank == 1:
    print("begin", time.monotonic())
    if way == "raise":
        raise ValueError("bad luck")
    if way == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if way == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    if way == "leave":
        sys.exit()
if way == "raise" and rank == 2:
    time.sleep(60)  # does not wait for others
dist.all_reduce(wf.ones(4 if way == "differ" and rank == 1 else 3))
