"""A step that Ctrl-C ends between the begin and the end of its reductions, or within one.

Run by `weft launch`.
"""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np

import weft as wf
import weft.distributed as dist
from weft.errors import DistributedError
from weft.ops.communication import bucket
from weft.transport import session

SIZE = 600  # a gradient is more than what ranks show or send each other at a time
written = []


def watched(members, xs, outs, reduction, reduce_into=bucket.reduce_into):
    written.extend(outs)
    reduce_into(members, xs, outs, reduction)


def main(way: str, mark: Path) -> None:
    dist.init_process_group(timeout=30)
    rank, joined = dist.get_rank(), session.current()
    if way == "messages":
        joined.memory = joined.world.channel = None
    joined.transport.single_core = way == "deferred"  # whatever machine this is
    bucket.reduce_into = watched
    size, cap = (6, None) if way == "native" else (SIZE, 0.1)
    net = wf.nn.Sequential(*[wf.nn.Linear(size, size) for _ in range(3)])
    model = wf.nn.parallel.DistributedDataParallel(net, bucket_cap_mb=cap)
    optimizer = wf.optim.SGD(model.parameters(), lr=0.1)

    def step() -> None:
        model(wf.ones(2, size)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        wf.synchronize()

    with wf.config.override(compile=way != "interpreted"):
        for _ in range(1 if way == "interpreted" else 3):
            step()
        dist.barrier()
        if rank == 0:
            while not (mark.exists() and joined.transport.failure):  # it waits, and fails
                time.sleep(0.01)
            try:
                step()
            except DistributedError as error:
                print("told", error)
        else:
            interrupted(step, mark)
    raise SystemExit(7)


def interrupted(step, mark: Path) -> None:
    threading.Timer(2.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    written.clear()
    try:
        step()
    except KeyboardInterrupt:
        print("interrupted")
    before = [x.copy() for x in written]
    mark.touch()
    time.sleep(1.5)  # the other rank comes meanwhile
    same = all(np.array_equal(x, y) for x, y in zip(before, written, strict=True))
    print("untouched", same, len(before))
    try:
        dist.barrier()
    except DistributedError as error:
        print("told", error)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
