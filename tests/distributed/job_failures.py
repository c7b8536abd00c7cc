"""A job that goes wrong, in the way that its argument says; run by `weft launch`."""

import os
import signal
import sys
import threading
import time

import weft as wf
import weft.distributed as dist
from weft import func

way = sys.argv[1]
if way == "late" and os.environ["PMI_RANK"] == "1":
    time.sleep(600)
dist.init_process_group(timeout=2 if way == "late" else 6)
rank = dist.get_rank()
dist.barrier()
if way == "step":
    model = wf.nn.parallel.DistributedDataParallel(wf.nn.Linear(3, 1))
    for step in range(9):  # compiled from the third one on
        if rank == 1 and step == 8:
            os.kill(os.getpid(), signal.SIGSTOP)
        model(wf.ones(2, 3)).sum().backward()
        wf.synchronize()
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
    if way == "out":
        os.execv(sys.executable, [sys.executable, "-c", "pass"])
if way == "programs":
    x = wf.ones(4 if rank == 1 else 3)
    begin = time.monotonic()
    try:
        (func.psum(x) * 2).sum().item()
    finally:
        print("told after", time.monotonic() - begin)
if way == "source":
    dist.broadcast(wf.ones(3), src=rank)
    sys.exit()
if way == "threads":
    x = wf.ones(3)
    if rank == 0:
        first = threading.Thread(target=dist.all_reduce, args=(x,))
        second = threading.Thread(target=dist.all_reduce, args=(wf.ones(3),), name="second")
        first.start()
        time.sleep(0.5)
        second.start()
        second.join()
    else:
        time.sleep(1.0)
if way == "raise" and rank == 2:
    time.sleep(600)  # does not wait for others
dist.all_reduce(wf.ones(4 if way == "differ" and rank == 1 else 3))
