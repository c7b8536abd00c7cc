"""The code cache of a new user: nothing but the kernel library, as the wheel brings it.

`python -m bench.cold_cache FOLDER` makes such a cache; kernels that are already compiled are used.
"""

from __future__ import annotations

import atexit
import functools
import shutil
import subprocess
import sys
import tempfile


def fill(folder: str) -> None:
    """Fills a new folder with the library, which is made once a process of the benchmark."""
    shutil.copytree(_made(), folder, dirs_exist_ok=True)


@functools.cache
def _made() -> str:
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "bench.cold_cache", folder], check=True)
    return folder


def main(folder: str) -> None:
    """Keeps this machine's library in the user's own cache, and copies it to a folder."""
    from weft.codegen.target import portable
    from weft.library.warm import keep
    from weft.runtime.compilation import compiler
    from weft.runtime.compilation.cache import Cache
    from weft.runtime.compilation.pack import key_of

    target = portable()
    if keep(target).where is not None:
        key = key_of(target)
        Cache(folder).store({key: compiler.cache().load(key) or b""})


if __name__ == "__main__":
    main(sys.argv[1])
