"""A job that goes on until it is stopped."""

import os
import time

import weft.distributed as dist

dist.init_process_group()
print("process", os.getpid(), flush=True)
while True:
    dist.barrier()
    time.sleep(0.01)
