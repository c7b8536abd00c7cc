"""A job one rank of which is killed once; it goes on where it was."""

import os
import signal
import sys
from pathlib import Path

import weft as wf
import weft.distributed as dist

dist.init_process_group(timeout=20)
saved = Path(sys.argv[1])
step = int(saved.read_text()) if saved.exists() else 0
while step < 4:
    x = wf.ones(1)
    dist.all_reduce(x)
    step += 1
    dist.barrier()
    if dist.get_rank() == 0:
        saved.write_text(str(step))
    dist.barrier()
    if step == 2 and dist.get_rank() == 1 and not os.path.exists(sys.argv[2]):
        Path(sys.argv[2]).touch()
        os.kill(os.getpid(), signal.SIGKILL)
print("ended at", step)
