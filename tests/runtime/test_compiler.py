"""Compilation in child processes and the disk cache, under faults."""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from handmade import BLOCK, affine, nothing
from patience import LIMIT, eventually

from weft import config
from weft.codegen.target import current
from weft.errors import CompileError, NoCompilerError
from weft.passes.launch import Kernel
from weft.runtime.compilation import compiler as module
from weft.runtime.compilation.cache import Cache, digest
from weft.runtime.compilation.child import _NAME, MOST_SENT
from weft.runtime.compilation.compiler import Compiler

FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
HEAD = "define void @weft_kernel(ptr %args, i64 %begin, i64 %end, i64 %thread) {\nentry:\n"
# No x86 processor has this instruction: LLVM gives up and aborts its process.
ABORTS = Kernel(
    "absurd",
    f"declare i32 @llvm.aarch64.crc32w(i32, i32)\n{HEAD}"
    "  %r = call i32 @llvm.aarch64.crc32w(i32 1, i32 2)\n"
    "  store i32 %r, ptr %args\n  ret void\n}\n",
)
REFUSED = Kernel("misspelt", HEAD + "  ret nothing\n}\n")


def works(address: int, scale: float = 2.0, shift: float = 4.0) -> bool:
    x, y = np.ones(BLOCK, np.float32), np.zeros(BLOCK, np.float32)
    slots = np.array([x.ctypes.data, y.ctypes.data], np.int64)
    FUNCTION(address)(slots.ctypes.data, 0, 1, 0)
    return bool((y == (scale + shift) / 2).all())


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with config.override(cache=str(tmp_path / "cache")):
        yield tmp_path / "cache"


@pytest.fixture
def compiler(folder: Path) -> Iterator[Compiler]:
    """A compiler that knows nothing, with an empty cache."""
    fresh = Compiler()
    yield fresh
    fresh.close()


def built(compiler: Compiler, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the kernels that are really compiled from here on."""
    names: list[str] = []
    feed = compiler._feed

    def spy(child, job):
        names.append(job.name)
        feed(child, job)

    monkeypatch.setattr(compiler, "_feed", spy)
    return names


def test_equal_text_is_compiled_once(compiler, monkeypatch):
    names = built(compiler, monkeypatch)
    one = affine(2.0, 4.0)
    other = Kernel("another name", one.ir)
    found = compiler.compile([one, other, one], current())
    assert found[one] == found[other] and works(found[one])
    assert len(names) == 1
    assert compiler.compile([other], current()) == {other: found[one]}
    assert len(names) == 1


def test_another_process_finds_the_kernels_on_disk(compiler, monkeypatch):
    kernels = [affine(2.0, float(i)) for i in range(6)]
    compiler.compile(kernels, current())
    second = Compiler()
    names = built(second, monkeypatch)
    found = second.compile(kernels, current())
    assert names == []
    assert all(works(found[k], 2.0, float(i)) for i, k in enumerate(kernels))


def test_targets_do_not_share_code(compiler, monkeypatch):
    names = built(compiler, monkeypatch)
    with config.override(target="x86-64-v2"):
        first = compiler.compile([affine(2.0, 4.0)], current())
    with config.override(target="native"):
        second = compiler.compile([affine(2.0, 4.0)], current())
    assert len(names) == 2
    assert [works(a) for a in (*first.values(), *second.values())] == [True, True]


def test_a_kernel_that_llvm_refuses_is_named_and_the_others_are_kept(compiler, monkeypatch):
    good = [affine(2.0, float(i)) for i in range(4)]
    with pytest.raises(CompileError, match=r"kernel misspelt: .*LLVM rejected"):
        compiler.compile([good[0], REFUSED, *good[1:]], current())
    names = built(compiler, monkeypatch)
    assert works(compiler.compile(good, current())[good[3]], 2.0, 3.0)
    assert names == []


def test_an_abort_of_llvm_is_an_error_that_names_the_kernel(compiler, monkeypatch):
    good = [affine(2.0, float(i)) for i in range(4)]
    with pytest.raises(CompileError, match=r"kernel absurd: the compiler died.*LLVM ERROR"):
        compiler.compile([good[0], ABORTS, *good[1:]], current())
    names = built(compiler, monkeypatch)
    assert works(compiler.compile(good, current())[good[3]], 2.0, 3.0)
    assert names == []  # the abort did not waste the others
    assert compiler.compile([affine(3.0, 1.0)], current())


def test_only_aborts(compiler):
    for _ in range(3):
        with pytest.raises(CompileError, match="absurd"):
            compiler.compile([ABORTS], current())


def test_a_child_killed_while_idle_is_replaced(compiler):
    compiler.prestart(2)
    for child in compiler._children:
        child.process.kill()
        child.process.wait()  # two that die with the same kernel in hand would be its fault
    assert compiler.compile([affine(2.0, 4.0)], current())


def test_a_child_killed_at_work_does_not_matter(compiler):
    kernels = [affine(2.0, float(i)) for i in range(40)]
    stop = threading.Event()
    kills = []

    def kill() -> None:
        while not stop.wait(0.15) and len(kills) < 3:
            for child in compiler._children[:1]:
                kills.append(child.process.pid)
                os.kill(child.process.pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    compiler.prestart(1)
    killer.start()
    try:
        found = compiler.compile(kernels, current())
    except CompileError as error:  # the same kernel was hit twice
        assert "died with exit code -9" in str(error)
        found = compiler.compile(kernels, current())
    finally:
        stop.set()
        killer.join()
    assert works(found[kernels[9]], 2.0, 9.0)


@pytest.mark.parametrize("executable", ["/nonexistent/python", "", None])
def test_no_interpreter_to_start(compiler, monkeypatch, executable):
    kernel = affine(2.0, 4.0)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", executable)
        with (
            pytest.warns(RuntimeWarning, match="nothing is compiled: cannot start a compiler"),
            pytest.raises(NoCompilerError, match="cannot start a compiler process"),
        ):
            compiler.compile([kernel], current())
    assert not compiler.available
    with pytest.raises(NoCompilerError):  # there is no immediate retry
        compiler.compile([kernel], current())
    compiler.begin(kernel, current())
    assert not compiler._children
    monkeypatch.setattr(module, "REST_SECONDS", 0.0)
    compiler._rested = 0.0
    assert works(compiler.compile([kernel], current())[kernel])


def test_fewer_compilers_than_wanted_are_enough(compiler, monkeypatch):
    class Last(module.Child):
        def __init__(self) -> None:
            if compiler._children:
                raise NoCompilerError("cannot start a compiler process: no more")
            super().__init__()

    monkeypatch.setattr(module, "Child", Last)
    kernels = [affine(2.0, float(i)) for i in range(3)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiler.prestart(4)
        assert len(compiler.compile(kernels, current())) == 3
    assert len(compiler._children) == 1


@pytest.mark.parametrize(
    "end", ["kill -9 $$", "exit 3", "echo LLVM ERROR: out of memory >&2; kill -6 $$"]
)
def test_compilers_that_are_always_killed_are_given_up(compiler, monkeypatch, tmp_path, end):
    script = tmp_path / "python"
    script.write_text(f"#!/bin/sh\necho x >> {tmp_path}/starts\nhead -c 12 > /dev/null\n{end}\n")
    script.chmod(0o700)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", str(script))
        with (
            pytest.warns(RuntimeWarning, match="programs are interpreted, which is slow") as told,
            pytest.raises(NoCompilerError, match=r"kernel affine.*: the compiler died"),
        ):
            compiler.compile([affine(2.0, float(i)) for i in range(20)], current())
        assert len(told) == 1
    assert len((tmp_path / "starts").read_text().split()) <= 25  # each kernel twice at most
    assert not compiler.available and not any(child.jobs for child in compiler._children)
    compiler._rested = 0.0
    kernel = affine(2.0, 1.0)
    assert works(compiler.compile([kernel], current())[kernel], 2.0, 1.0)


def test_threads_compile_at_the_same_time(compiler):
    kernels = [affine(2.0, float(i)) for i in range(8)]
    results: list[dict[Kernel, int]] = []

    def compile_some(start: int) -> None:
        mine = [kernels[(start + i) % 8] for i in range(5)]
        results.append(compiler.compile(mine, current()))

    threads = [threading.Thread(target=compile_some, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    merged: dict[Kernel, set[int]] = {}
    for result in results:
        for kernel, address in result.items():
            merged.setdefault(kernel, set()).add(address)
    assert all(len(addresses) == 1 for addresses in merged.values()) and len(merged) == 8


def test_children_work_on_while_their_parent_does_something_else(compiler, monkeypatch):
    kernels = [affine(3.0, float(i)) for i in range(2 * MOST_SENT)]
    for kernel in kernels:
        compiler.begin(kernel, current())
    compiler.feed()
    given = [job.name for child in compiler._children for job in child.jobs]
    assert len(given) >= MOST_SENT - 1  # one may be done
    names = built(compiler, monkeypatch)
    urgent = affine(5.0, 5.0)
    assert works(compiler.compile([urgent], current())[urgent], 5.0, 5.0)
    assert names[0] == urgent.name  # what waits is not in its way
    found = compiler.compile(kernels, current())
    assert all(works(found[kernel], 3.0, float(i)) for i, kernel in enumerate(kernels))
    assert len(names) <= 1 + len(kernels) - len(given)


def test_ctrl_c_while_compiling_leaves_everything_usable(compiler):
    kernels = [affine(2.0, float(i)) for i in range(60)]
    timer = threading.Timer(0.25, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        compiler.compile(kernels, current())
        time.sleep(LIMIT)  # in case the machine was faster
    timer.join()
    assert not any(child.jobs for child in compiler._children)
    found = compiler.compile(kernels, current())
    assert works(found[kernels[7]], 2.0, 7.0)


def test_a_process_with_thousands_of_files_compiles(compiler):
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    files = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        kernel = affine(3.0, 1.0)
        assert works(compiler.compile([kernel], current())[kernel], 3.0, 1.0)
    finally:
        for file in files:
            os.close(file)
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_full_disk_leaves_no_room_for_messages_only(compiler, monkeypatch):
    def full() -> None:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with pytest.raises(CompileError, match="it said nothing"):
        compiler.compile([ABORTS], current())
    kernel = affine(3.0, 2.0)
    assert works(compiler.compile([kernel], current())[kernel], 3.0, 2.0)


DAMAGES = {
    "empty": lambda entry: b"",
    "half": lambda entry: entry[: len(entry) // 2],
    "longer": lambda entry: entry + b"x",
    "flipped": lambda entry: entry[:200] + bytes([entry[200] ^ 1]) + entry[201:],
    "foreign": lambda entry: b"something else entirely" * 100,
    "other version": lambda entry: entry[:4] + b"\xff" + entry[5:],
}


@pytest.mark.parametrize("damage", list(DAMAGES))
def test_damaged_entries_are_ignored_and_replaced(damage, compiler, folder, monkeypatch):
    kernel = affine(2.0, 4.0)
    compiler.compile([kernel], current())
    (path,) = folder.glob("*.o")
    whole = path.read_bytes()
    path.write_bytes(DAMAGES[damage](whole))
    second = Compiler()
    names = built(second, monkeypatch)
    assert works(second.compile([kernel], current())[kernel])
    second.close()
    assert len(names) == 1
    assert path.read_bytes()[:40] == whole[:40] and len(path.read_bytes()) == len(whole)


def test_an_entry_under_another_key_is_ignored(tmp_path):
    cache = Cache(str(tmp_path))
    a, b = digest("a"), digest("b")
    cache.store({a: b"code"})
    assert cache.load(a) == b"code"
    (tmp_path / f"{a}.o").rename(tmp_path / f"{b}.o")
    assert cache.load(a) is None and cache.load(b) is None


def test_digests_do_not_depend_on_where_the_parts_are_cut():
    assert digest("ab", "c") != digest("a", "bc") != digest("abc")


def test_a_folder_that_cannot_be_made_costs_a_warning_and_no_more(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with config.override(cache=str(tmp_path / "file" / "cache")):
        compiler = Compiler()
        with pytest.warns(RuntimeWarning, match="kernels are not cached between runs"):
            found = compiler.compile([affine(2.0, 4.0)], current())
        assert works(*found.values())
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # told once
            compiler.compile([affine(3.0, 4.0)], current())
        compiler.close()


def test_a_full_disk_costs_a_warning_and_leaves_nothing_half(tmp_path, monkeypatch):
    cache = Cache(str(tmp_path))

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.warns(RuntimeWarning, match="No space left"):
        cache.store({digest("a"): b"code"})
    assert list(tmp_path.iterdir()) == []
    assert cache.load(digest("a")) is None


def test_the_oldest_entries_go_first(tmp_path):
    cache = Cache(str(tmp_path), limit=100_000)
    keys = [digest(str(i)) for i in range(20)]
    for age, key in enumerate(keys):
        cache.store({key: b"x" * 10_000})
        os.utime(tmp_path / f"{key}.o", (0, 1e9 + age))
    assert cache.load(keys[0]) is not None  # used again today
    cache.trim()
    kept = [key for key in keys if (tmp_path / f"{key}.o").exists()]
    assert kept == [keys[0], *keys[-7:]]


FILLING = """
    import sys
    from handmade import affine
    from test_compiler import works
    from weft.codegen.target import current
    from weft.runtime.compilation.compiler import compile_kernels
    for turn in range(10):
        kernels = [affine(2.0, float(turn * 3 + i)) for i in range(3)]
        found = compile_kernels(kernels, current())
        assert all(works(found[k], 2.0, float(turn * 3 + i)) for i, k in enumerate(kernels))
    print("fine")
"""


@pytest.mark.slow
def test_processes_fill_one_cache_at_the_same_time(folder):
    here = os.path.dirname(__file__)
    root = os.path.dirname(os.path.dirname(here))
    environment = {**os.environ, "WEFT_CACHE": str(folder)}
    environment["PYTHONPATH"] = os.pathsep.join([root, f"{root}/tests", here])
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(FILLING)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
        )
        for _ in range(4)
    ]  # fmt: skip
    for process in processes:
        out, err = process.communicate(timeout=60)
        assert out == "fine\n", err
    assert len(list(folder.glob("*.o"))) == 30 and not list(folder.glob("*.tmp"))


def test_children_end_with_their_parent(folder):
    code = """
        import os, sys
        from weft.runtime.compilation import compiler
        from weft.runtime.execution import driver
        driver.prestart()
        print(*[child.process.pid for child in compiler._compiler._children], flush=True)
        os.kill(os.getpid(), 9)
    """
    root = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
    process = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": root, "WEFT_CACHE": str(folder)},
    )  # fmt: skip
    children = [int(pid) for pid in process.stdout.split()]
    assert children
    eventually(lambda: not any(runs(pid) for pid in children))


def runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def test_names_that_begin_with_the_symbol_are_left_alone():
    ir = "@weft_kernel @weft_kernel_2 @weft_kernel.x @weft_kernel("
    assert _NAME.sub("@k", ir) == "@k @weft_kernel_2 @weft_kernel.x @k("


def test_kernels_are_begun_before_anybody_waits(compiler, monkeypatch):
    names = built(compiler, monkeypatch)
    kernels = [affine(2.0, float(i)) for i in range(6)]
    for kernel in kernels:
        compiler.begin(kernel, current())
    assert names
    found = compiler.compile(kernels[1:], current())  # the first is no longer needed
    assert all(works(found[k], 2.0, float(i)) for i, k in enumerate(kernels) if i)
    assert len(names) <= len(kernels)
    count = len(names)
    compiler.begin(kernels[2], current())
    assert works(compiler.compile(kernels, current())[kernels[0]], 2.0, 0.0)
    assert len(names) - count <= 1


def test_what_was_begun_fails_where_it_is_wanted(compiler):
    compiler.begin(REFUSED, current())
    compiler.compile([affine(2.0, 4.0)], current())
    with pytest.raises(CompileError, match=r"kernel misspelt"):
        compiler.compile([REFUSED], current())


def test_a_kernel_is_known_by_its_key(compiler, folder):
    kernel = affine(2.0, 4.0)
    stored = Kernel("by key", "", module.key_of(kernel, current()))
    with pytest.raises(CompileError, match="kernel by key: its object code is no longer on disk"):
        compiler.compile([stored], current())
    compiler.compile([kernel], current())
    second = Compiler()  # its code lives no longer than it does
    assert works(second.compile([stored], current())[stored])


def test_what_was_begun_and_came_meanwhile_needs_no_text(compiler, folder):
    first, second = affine(2.0, 4.0), affine(3.0, 4.0)
    compiler.begin(first, current())
    compiler.begin(second, current())
    key = module.key_of(second, current())
    compiler.compile([first], current())  # the other result may come with it
    eventually(lambda: compiler.feed() or compiler.holds(key))
    assert works(compiler.compile([stored := Kernel("by key", "", key)], current())[stored], 3.0)


def test_a_kernel_that_does_nothing(compiler):
    FUNCTION(compiler.compile([nothing()], current())[nothing()])(None, 0, 0, 0)


def test_compilers_start_early_only_where_nothing_was_compiled_before(folder, monkeypatch):
    fresh = Compiler()
    monkeypatch.setattr(module, "_compiler", fresh)
    module.prestart(nothing(), current())
    assert fresh._children
    fresh.compile([nothing()], current())
    fresh.close()
    module.prestart(nothing(), current())
    assert not fresh._children
    second = Compiler()
    monkeypatch.setattr(module, "_compiler", second)
    module.prestart(nothing(), current())
    assert not second._children
