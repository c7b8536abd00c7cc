"""Finalizers act in the process that made the object, and in no forked one."""

import gc
import os
import threading

import numpy as np
import pytest

from weft.eager.record.pending import state
from weft.formats.event.file import EventFile
from weft.host.garbage_collection import FirstRead, finalize_here
from weft.pipeline import Pipeline


class Thing:
    pass


def in_child(work):
    """The exit status of a forked process that does some work and collects garbage."""
    pid = os.fork()
    if not pid:
        status = 1
        try:
            work()
            gc.collect()
            status = 0
        finally:  # never on to the other tests
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_finalizer_runs_only_where_it_was_made(tmp_path):
    thing = [Thing()]
    finalize_here(thing[0], (tmp_path / "x").mkdir)
    assert in_child(thing.clear) == 0
    assert not (tmp_path / "x").exists()
    thing.clear()
    assert (tmp_path / "x").exists()


@pytest.mark.parametrize("kind", ["cache", "prefetch", "threads", "events"])
def test_a_child_that_drops_a_running_object_leaves_the_parents_alone(kind, tmp_path):
    source = Pipeline.from_generator(lambda: (np.arange(3) + i for i in range(40)))
    dataset = {
        "cache": lambda: source.cache(tmp_path / "cache"),
        "prefetch": lambda: source.prefetch(4),
        "threads": lambda: source.map(np.sum, 2),
        "events": lambda: source,
    }[kind]()
    held = [EventFile(tmp_path)] if kind == "events" else [dataset, iter(dataset)]
    if kind == "events":
        assert in_child(held.clear) == 0
        held[0].flush()
        held[0].close()
        return
    next(held[1])
    del dataset
    assert in_child(held.clear) == 0
    assert len(list(held[1])) == 39
    if kind == "cache":
        assert len(list(source.cache(tmp_path / "cache"))) == 40
        assert (tmp_path / "cache").exists()


class Reading:
    def __init__(self, read):
        self.me, self.read = self, read

    def __del__(self):
        self.read()


def test_a_finalizer_may_read_a_threads_attribute_that_is_being_made(monkeypatch):
    found, made = [], state.State

    def collected():
        gc.collect()
        return made()

    class Own(threading.local):
        values = FirstRead(lambda: [gc.collect()])

    own = Own()
    Reading(lambda: found.append(own.values))
    found.append(own.values)
    assert found[0] is found[1]

    def work():
        Reading(lambda: found.append(state.trace.now))
        found.append(state.trace.now)

    monkeypatch.setattr(state, "State", collected)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert len(found) == 4 and found[2] is found[3]
    assert found[3] is not state.trace.now
