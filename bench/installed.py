"""Weft as a wheel installs it: its modules, and the kernel library for this machine's processor."""

from __future__ import annotations

import atexit
import functools
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


@functools.cache
def tree() -> str:
    """A folder to start Python in, made once a process; `weft` and `bench` are found there."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    shutil.copytree(ROOT / "weft", Path(folder, "weft"))
    Path(folder, "bench").symlink_to(ROOT / "bench")
    command = [sys.executable, "-m", "bench.installed"]
    subprocess.run(command, check=True, cwd=folder)
    return folder


def main() -> None:
    """Puts the pack for this machine where a wheel has it; kernels of the code cache are used."""
    from weft.codegen.target import portable
    from weft.library.making import listed, made
    from weft.runtime.compilation import compiler, fingerprint
    from weft.runtime.compilation.pack import FOLDER, START, key_of, name_of, sealed

    target = portable()
    name = name_of(target)
    if name is not None:
        kept = compiler.cache().load(key_of(target))
        pack = made(target, listed()) if kept is None else kept[START:]
        FOLDER.mkdir()
        Path(FOLDER, name).write_bytes(sealed(pack, fingerprint.outline()))


if __name__ == "__main__":
    main()
