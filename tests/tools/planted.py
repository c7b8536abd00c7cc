"""Faults that tests of the attacks plant in a worker; each must be reported."""

import faulthandler
import os
import signal
import time
from pathlib import Path

import numpy as np

import weft
from tools.attack import caches, calls, kills, loops, memory, ranks, tasks
from weft.runtime.engine import Function
from weft.transform.batching import divergence, region


def passes() -> None:
    """No fault at all."""
    _calls(lambda x: None)


def dies_of_what_was_before() -> None:
    """The third call of a process ends it."""
    seen = []
    _calls(lambda x: seen.append(x) or len(seen) < 5 or os.kill(os.getpid(), signal.SIGSEGV))


def hangs() -> None:
    """A function does not come back."""
    _calls(lambda x: time.sleep(1000))


def raises_plainly() -> None:
    """A function raises an error without information."""
    _calls(lambda x: [][1])


def compiles_wrongly() -> None:
    """A compiled function gives something else."""
    _calls(lambda x: weft.ones(3) + int(weft.config.get("compile")))


def compiles_nothing() -> None:
    """A function raises when it is compiled."""

    def function(x):
        if weft.config.get("compile"):
            raise weft.errors.CompileError("planted_function: no kernel")

    _calls(function)


def _calls(function) -> None:
    """Every call is one of this function."""
    made = calls.Target("weft.planted_function", "eager", "function", function, function)
    calls.drawn_call = lambda draw: calls.Call(made, ([draw.tensor()], {}))


def fails() -> None:
    """The attack itself is broken."""

    def broken(draw):
        raise LookupError("no such call")

    calls.drawn_call = broken


def loads_anything() -> None:
    """A loader that takes a damaged file for another."""
    load = weft.load

    def lenient(path):
        try:
            return load(path)
        except weft.errors.DataError:
            return {"w": weft.ones(2)}

    weft.load = lenient


def loads_with_plain_errors() -> None:
    """A loader that passes NumPy's error on."""
    weft.load = lambda path: np.load(path)


def saves_in_place() -> None:
    """A file that is written a part at a time where the last one was."""
    save = weft.save

    def plain(state, path) -> None:
        save(state, "aside")
        data = Path("aside").read_bytes()
        with open(path, "wb", buffering=0) as file:
            for part in (data[:100], data[100:]):
                time.sleep(0.005)
                file.write(part)

    weft.save = plain


def saves_late() -> None:
    """What is acknowledged is not there yet."""
    save, waiting = kills.Saved.save, []

    def late(self, number) -> None:
        waiting.append(number)
        if len(waiting) > 3 or number == 0:
            save(self, waiting.pop(0))

    kills.Saved.save = late
    kills.Checkpoint = kills.Saved


def leaves_files() -> None:
    """Each write leaves another file behind."""
    save = weft.save

    def untidy(state, path) -> None:
        save(state, path)
        Path(f"{path}.left").touch()

    weft.save = untidy
    kills.Checkpoint = kills.Saved


def half_a_step() -> None:
    """A step of which a part can be seen."""
    for optimizer in (weft.optim.Adam, weft.optim.SGD):
        _halve(optimizer)


def _halve(optimizer) -> None:
    step = optimizer.step

    def slow(self, *args):
        result = step(self, *args)
        first = self.param_groups[0]["params"][0]
        with weft.no_grad():
            first.add_(1.0)
            weft.synchronize()
            time.sleep(0.01)
            first.sub_(1.0)
        return result

    optimizer.step = slow


def believes_the_cache() -> None:
    """A result depends on the contents of the folder, and may be missing."""
    right = caches.result

    def result(name, size, cache):
        if cache != "clean" and name == "softmax":
            faulthandler.disable()
            os.kill(os.getpid(), signal.SIGBUS)
        return right(name, size, cache=cache) + ("" if cache == "clean" else "!")

    caches.result = result


def raises_under_limits() -> None:
    """An error of the system's, wherever something is short."""
    right = memory.measured

    def measured(name, size, **settings):
        if settings:
            raise OSError("cannot do it")
        return right(name, size)

    memory.measured = measured


def computes_wrongly() -> None:
    """What is compiled is off by a little."""
    call = Function.__call__

    def wrong(self, feeds, state):
        return [y if y is None else np.asarray(y) * 1.01 + 0.01 for y in call(self, feeds, state)]

    Function.__call__ = wrong


def leaks_what_is_not_taken() -> None:
    """Cotangents of examples that do not take a branch are not cut off."""
    divergence._cut_off = lambda active, x: x
    region.confined = lambda function, mapped: False


def forgets_changes() -> None:
    """Every fifth change in place is lost."""
    add, made = weft.Tensor.add_, []

    def forgetful(self, *args):
        made.append(None)
        return add(self, *args) if len(made) % 5 else self

    weft.Tensor.add_ = forgetful


def keeps_what_is_given_up() -> None:
    """Changes that wait for an interrupted loop are not undone, so reading them loops."""
    weft.drop_interrupted = lambda: None
    loops.PATIENCE = 6.0


def ends_late() -> None:
    """A job takes longer to end than it may."""
    ranks.ENDS_WITHIN = 0.01


def trains_slowly() -> None:
    """A cluster does not begin to train in its time."""
    tasks.TRAINS_WITHIN = 0.01


def loses_the_end() -> None:
    """The end of a run is not saved."""
    weft.train.callbacks.ModelCheckpoint.keep_last = lambda self, trainer, tolerant=False: None
