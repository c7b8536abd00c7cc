"""The processor time of a program's first steps, of all its processes.

`MADE_STEPS` is their number, `MADE_SECONDS` a limit of processor time, and `MADE_TIMES` the file
for the result. Time begins when the first optimizer is made and ends when the parameters of the
last step are there: compiling and the work of compiler processes are in it, imports are not. No
other step is read, which would make another one of it. The program ends there.
"""

import atexit
import contextlib
import functools
import importlib
import json
import os
import threading
from pathlib import Path

import psutil
from imported import when_imported

STEPS, SECONDS = int(os.environ["MADE_STEPS"]), float(os.environ["MADE_SECONDS"])
TIMES = Path(os.environ["MADE_TIMES"])


def used():
    """Seconds of the processor that this process and those that it started have taken."""
    own = psutil.Process()
    times = [own.cpu_times()]
    for child in own.children(recursive=True):
        with contextlib.suppress(psutil.Error):  # it has ended
            times.append(child.cpu_times())
    return sum(t.user + t.system + t.children_user + t.children_system for t in times)


class Timed:
    """Counts steps of optimizers, those of wrapped optimizers once."""

    def __init__(self, torch):
        self.begin, self.steps, self.first, self.done = None, 0, None, False
        made = torch.optim.Optimizer.__init__

        @functools.wraps(made)
        def begin(optimizer, *args, **options):
            if self.begin is None:
                self.begin = used()
            made(optimizer, *args, **options)

        torch.optim.Optimizer.__init__ = begin
        importlib.import_module("torch.optim.optimizer").register_optimizer_step_post_hook(
            self.count
        )
        atexit.register(self.write)

    def count(self, optimizer, args, options):
        """Count a step; end the program after the last."""
        self.steps += 1
        if self.steps == 1 or self.steps % 10 == 0 or self.steps == STEPS:
            ends = self.steps == STEPS or used() - self.begin > SECONDS
            if ends or self.steps == 1:
                last = optimizer.param_groups[-1]["params"][-1]
                last.detach().reshape(-1)[:1].tolist()
            now = used() - self.begin
            self.first = now if self.first is None else self.first
            if ends:
                self.write(now)
                for child in psutil.Process().children(recursive=True):
                    child.kill()
                os._exit(0)

    def write(self, now=None):
        """Write the result, once."""
        if self.steps and not self.done and threading.current_thread() is threading.main_thread():
            self.done = True
            now = used() - self.begin if now is None else now
            found = {"steps": self.steps, "first": round(self.first, 2), "processor": round(now, 2)}
            TIMES.write_text(json.dumps(found))


when_imported(Timed)
