"""Garbage collection is paused inside the calls, and only there."""

from __future__ import annotations

import dis
import gc
import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

import weft as wf
from weft import config
from weft.host.garbage_collection import uncollected


@uncollected
def call(function=gc.isenabled):
    return function()


@pytest.fixture(autouse=True)
def collecting():
    gc.enable()
    yield
    gc.enable()


def test_it_continues_after_the_last_of_the_calls():
    assert call(lambda: (call(), gc.isenabled())) == (False, False)
    assert gc.isenabled()


def test_it_continues_after_an_error():
    with pytest.raises(ZeroDivisionError):
        call(lambda: 1 // 0)
    assert gc.isenabled()


def test_who_has_turned_it_off_finds_it_off():
    gc.disable()
    call()
    assert not gc.isenabled()


def test_calls_of_two_threads_overlap():
    inside, leave = threading.Event(), threading.Event()
    other = threading.Thread(target=call, args=(lambda: (inside.set(), leave.wait(10)),))

    def begin():
        other.start()
        assert inside.wait(10)

    call(begin)
    assert not gc.isenabled()
    leave.set()
    other.join()
    assert gc.isenabled()


def test_ctrl_c_after_any_call_leaves_it_on_from_the_next_one():
    """Python looks for signals after each call: here they come at one place after another."""
    code = call.__code__
    after = {
        instruction.offset
        for before, instruction in zip(
            list(dis.get_instructions(code)), list(dis.get_instructions(code))[1:], strict=False
        )
        if before.opname == "CALL"  # the function's own is within the `try`
    }
    interruptions = 0

    def trace_at(place):
        passed = 0

        def trace(frame, event, _):
            nonlocal passed
            if frame.f_code is not code:
                return None
            frame.f_trace_opcodes = True
            if event == "opcode" and frame.f_lasti in after:
                passed += 1
                if passed == place:
                    raise KeyboardInterrupt
            return trace

        return trace

    before = sys.gettrace()
    for place in range(1, 20):
        sys.settrace(trace_at(place))
        try:
            call()
        except KeyboardInterrupt:
            interruptions += 1
        finally:
            sys.settrace(before)
        call()
        assert gc.isenabled(), place
    assert 5 <= interruptions < 19


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")
def test_a_forked_child_collects():
    def fork():
        child = os.fork()
        if not child:
            os._exit(0 if gc.isenabled() else 1)
        return child

    assert os.waitstatus_to_exitcode(os.waitpid(call(fork), 0)[1]) == 0


def test_compiling_leaves_it_on(tmp_path: Path) -> None:
    x = wf.ones(5, 7)
    with config.override(compile=1, cache=str(tmp_path)):
        assert float((x * 3).sum()) == 105
    assert gc.isenabled()


def test_what_an_import_makes_counts_as_old_and_is_collected_in_the_end() -> None:
    code = """
    import gc, weakref
    gc.disable()
    kept = [[i] for i in range(20_000)]
    class Node: ...
    node = Node()
    node.itself = node
    gone = weakref.ref(node)
    from weft.host.garbage_collection import count_as_old
    count_as_old()
    assert gc.get_freeze_count() < 1_000 and len(gc.get_objects(generation=2)) > 20_000
    assert gc.get_count()[0] < 1_000
    del node
    gc.collect(1)
    assert gone() is not None
    gc.collect()
    assert gone() is None
    gc.freeze()
    frozen, more = gc.get_freeze_count(), [[i] for i in range(20_000)]
    count_as_old()
    assert gc.get_freeze_count() == frozen
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)
