"""Garbage collection is postponed inside the blocks, and only there."""

from __future__ import annotations

import gc
import os
import threading
from pathlib import Path

import pytest

import weft as wf
from weft import config
from weft.host.garbage_collection import collection_waits


def test_it_continues_after_the_last_of_the_blocks():
    assert gc.isenabled()
    with collection_waits():
        with collection_waits():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_continues_after_an_error():
    with pytest.raises(ValueError), collection_waits():
        raise ValueError
    assert gc.isenabled()


def test_who_has_turned_it_off_finds_it_off():
    gc.disable()
    try:
        with collection_waits():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_blocks_of_two_threads_overlap():
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with collection_waits():
            inside.set()
            leave.wait(10)

    with collection_waits():
        thread = threading.Thread(target=other)
        thread.start()
        assert inside.wait(10)
    assert not gc.isenabled()
    leave.set()
    thread.join()
    assert gc.isenabled()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")
def test_a_forked_child_collects():
    with collection_waits():
        child = os.fork()
        if not child:
            os._exit(0 if gc.isenabled() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_compiling_leaves_it_on(tmp_path: Path) -> None:
    x = wf.ones(5, 7)
    with config.override(compile=1, cache=str(tmp_path)):
        assert float((x * 3).sum()) == 105
    assert gc.isenabled()
