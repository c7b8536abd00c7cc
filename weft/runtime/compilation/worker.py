"""A child process that turns LLVM IR into object code, so that an LLVM abort kills only itself.

Run as a script, by `weft.runtime.compilation.child`, without site packages or the rest of Weft: it
starts in 50 ms. It reads requests from standard input and answers on standard output:

    request   4 x uint32 lengths, then the processor's name, its features, its kind, the LLVM IR;
              or, with three empty texts before it, what `weft.runtime.finish.planned` reads
    answer    status byte (0 object code or a plan, 1 error text), uint64 length, the bytes

It ends when standard input does, or after a minute without a request. It does not ask to be killed
with its parent: Linux would do so when the *thread* that started it ends.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import resource
import select
import struct
import sys
import types
from collections.abc import Iterator
from typing import IO, Any, Final

REQUEST: Final = struct.Struct("<4I")
ANSWER: Final = struct.Struct("<BQ")
IDLE_SECONDS: Final = 60.0
OBJECTS: Final = 100_000
"""New objects between two collections, which find few cycles and take a fifth of a plan's time."""


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answers requests until there are no more.

    Args:
        requests: unbuffered, so that `select` sees those that wait.
    """
    from weft.codegen import llvm  # noqa: PLC0415 - the path to it is set up by `main`
    from weft.errors import CompileError  # noqa: PLC0415

    with _resources_alone():
        llvm.tune()
    while select.select([requests], [], [], IDLE_SECONDS)[0]:
        head = _read(requests, REQUEST.size)
        if len(head) < REQUEST.size:
            return
        cpu, features, kind, ir = (_read(requests, n).decode() for n in REQUEST.unpack(head))
        refusal = CompileError if cpu else Exception  # whoever asks for a plan meets it itself
        try:
            status, body = 0, llvm.to_object(ir, cpu, features, kind) if cpu else _plan(ir)
        except refusal as error:
            status, body = 1, str(error).encode()
        answers.write(ANSWER.pack(status, len(body)) + body)
        answers.flush()


def _plan(text: str) -> bytes:
    """The plan of a step; from the first one on the process has imported NumPy and the compiler."""
    from weft.runtime import finish  # noqa: PLC0415 - kernels need none of it

    return finish.planned(text)


def _read(requests: IO[bytes], size: int) -> bytes:
    """So many bytes, or fewer at the end."""
    found = b""
    while len(found) < size and (more := requests.read(size - len(found))):
        found += more
    return found


class _Folder(str):
    __truediv__ = os.path.join


@contextlib.contextmanager
def _resources_alone() -> Iterator[None]:
    """Gives llvmlite what finds its library; `importlib.resources` takes as long as all the rest.

    It imports `tempfile`, `pathlib`, `shutil` with all compressions, `urllib` and `ipaddress`.
    """
    found: Any = types.ModuleType("importlib.resources")
    found.files = lambda package: _Folder(sys.modules[package].__path__[0])
    found.as_file = contextlib.nullcontext
    sys.modules["importlib.resources"] = found
    importlib.__dict__["resources"] = found
    yield
    del sys.modules["importlib.resources"], importlib.__dict__["resources"]


def main(folders: list[str]) -> None:
    """Sets up imports and pipes, then serves; `folders` have llvmlite and its dependencies."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # an abort is expected, its core dump useless
    gc.set_threshold(OBJECTS)
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # planning multiplies nothing
    sys.path.extend(folders)
    # A bare package instead of weft/__init__.py, which would import NumPy.
    package = types.ModuleType("weft")
    package.__path__ = [os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))]
    sys.modules["weft"] = package
    requests, answers = os.fdopen(os.dup(0), "rb", 0), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)  # LLVM's output must not mix with the answers
    serve(requests, answers)


if __name__ == "__main__":
    main(sys.argv[1:])
