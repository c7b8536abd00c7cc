"""Compiler processes and Ctrl-C: no process is lost, and no answer is misread."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

from handmade import affine
from interruption import interrupted_everywhere

from weft import config
from weft.codegen.target import current
from weft.runtime.compilation import child, worker
from weft.runtime.compilation import compiler as module
from weft.runtime.compilation.cache import MARK
from weft.runtime.compilation.compiler import Compiler


def _children() -> set[int]:
    """The child processes of this thread."""
    with open(f"/proc/self/task/{threading.get_native_id()}/children", encoding="ascii") as text:
        return set(map(int, text.read().split()))


def _emptied(folder: Path) -> list[str]:
    names = [entry.name for entry in folder.glob("*") if entry.name != MARK]
    for name in names:
        (folder / name).unlink()
    return names


def test_ctrl_c_at_any_point_leaves_no_process_and_no_file_behind(tmp_path):
    kernels = [affine(2.0, 4.0), affine(2.0, 5.0)]
    compiler, before = Compiler(), _children()

    def compile_anew() -> None:
        compiler._linked.clear()
        compiler.compile(kernels, current())

    def check() -> None:
        assert _children() - before == {child.process.pid for child in compiler._children}
        names = _emptied(tmp_path)
        assert all(name.endswith(".o") for name in names)
        compile_anew()
        assert set(compiler._linked) == {module.key_of(x, current()) for x in kernels}
        _emptied(tmp_path)

    with config.override(cache=str(tmp_path)):
        assert interrupted_everywhere(compile_anew, check, stride=97) > 2
    compiler.close()
    assert _children() <= before


def test_compiler_processes_do_without_numpy():
    """Importing it would take more than half of a process's start."""
    command = [sys.executable, "-I", "-S", "-X", "importtime", worker.__file__, *child.folders()]
    said = subprocess.run(command, input=b"", capture_output=True, check=True)
    imported = {line.split("|")[-1].strip() for line in said.stderr.decode().splitlines()}
    assert "weft.codegen.llvm" in imported and not any(x.startswith("numpy") for x in imported)
