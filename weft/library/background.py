"""Has the library made by another process, once a kernel is missing on a machine without one."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import time
from typing import TYPE_CHECKING, Any, Final

from weft import config
from weft.codegen.target import PORTABLE, Target
from weft.host.deferred import Deferred
from weft.runtime.compilation import compiler
from weft.runtime.compilation.cache import digest
from weft.runtime.compilation.pack import key_of, pack_of

if TYPE_CHECKING:
    import subprocess
else:
    subprocess = Deferred("subprocess")

REST_SECONDS: Final = 3600
"""After that, one that has not done it is taken for dead."""
_CODE: Final = """
import sys
sys.path[:] = sys.argv[2:]
from weft.library.warm import main
main(sys.argv[1])
"""
_started: Final[list[Any]] = []  # as long as they are referred to, nothing is said about them


@functools.cache
def begin(target: Target) -> None:
    """Starts the process, unless it is not wanted, or one has been started in the last hour.

    It outlives this one, is no part of its session, and is never waited for.
    """
    name = next((name for name, found in PORTABLE.items() if found == target), None)
    if name is None or not config.get("warm") or pack_of(target) is not None:
        return
    cache, asked = compiler.cache(), digest("asked", key_of(target))
    if sys.is_finalizing() or not sys.executable:
        return
    now, last = int(time.time()), int.from_bytes(cache.load(asked) or b"", "little")
    if now - last < REST_SECONDS:
        return
    cache.store({asked: now.to_bytes(8, "little")})
    if not cache.holds(asked):  # there is no folder to keep it in
        return
    command = [sys.executable, "-I", "-c", _CODE, name, *map(os.path.abspath, sys.path)]
    environment = {**os.environ, "WEFT_CACHE": str(cache.folder), "WEFT_WARM": "0"}
    with contextlib.suppress(OSError):
        process = subprocess.Popen(
            command, env=environment, start_new_session=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        process.returncode = 0  # else Python warns that it still runs
        _started.append(process)
