"""Runs a program as Python does, with Weft in the place of PyTorch and others."""

from __future__ import annotations

import builtins
import importlib.machinery
import importlib.util
import os
import signal
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import Any, Final

from weft.errors import ConfigError
from weft.mirror import table
from weft.mirror.finder import install
from weft.mirror.mirror import found
from weft.mirror.tensorflow_version import version_for

_CLASSES: Final = (
    "torch.Tensor", "lightning.pytorch.LightningModule", "torch.nn.Module",
    "lightning.pytorch.Trainer",
)  # fmt: skip
"""Classes whose methods programs call; the most special first."""


def run(
    script: str, arguments: Sequence[str], is_module: bool = False, tensorflow: int | None = None
) -> int:
    """Run a script, or a module by its name, as `__main__`.

    `sys.argv`, `sys.path[0]`, the exit status and tracebacks are those of `python SCRIPT`.

    Args:
        script: a path, or a module's name.
        arguments: of the program.
        is_module: which of them it is.
        tensorflow: the version of TensorFlow that it is for; by default its text tells.

    Returns:
        The exit status.

    Raises:
        ConfigError: there is no such script or module.
    """
    code, spec, path = _of_module(script) if is_module else _of_script(script)
    table.use_tensorflow(tensorflow or version_for(script, is_module))
    install()
    sys.argv = [path, *arguments]
    main = ModuleType("__main__")
    main.__file__, main.__spec__, main.__builtins__ = path, spec, builtins  # type: ignore[attr-defined]
    main.__package__ = None if spec is None else spec.parent
    main.__loader__ = importlib.machinery.SourceFileLoader("__main__", path)
    sys.modules["__main__"] = main
    try:
        exec(code, vars(main))
    except SystemExit:
        raise
    except BaseException as error:
        return _told(error)
    return 0


def _of_script(script: str) -> tuple[CodeType, None, str]:
    path = Path(script)
    if not path.is_file():
        what = "it is a folder" if path.is_dir() else "there is no such file"
        raise ConfigError(f"run: expected a Python program, got {script!r}: {what}")
    sys.path[0] = str(path.resolve().parent)
    return _compiled(path.read_bytes(), script), None, script


def _compiled(source: bytes, path: str) -> CodeType:
    """The code of a program.

    Raises:
        SystemExit: it is not Python; the line is told as Python tells it.
    """
    try:
        return compile(source, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        sys.excepthook(type(error), error.with_traceback(None), None)
        raise SystemExit(1) from None


def _of_module(name: str) -> tuple[CodeType, ModuleSpec, str]:
    sys.path[0] = os.getcwd()
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except ModuleNotFoundError:
        spec = None
    loader: Any = None if spec is None else spec.loader
    if spec is None or spec.origin is None or not hasattr(loader, "get_code"):
        raise ConfigError(f"run: expected a module that can be run, got {name!r}")
    return loader.get_code(spec.name), spec, spec.origin


def _told(error: BaseException) -> int:
    """Tell an exception as Python does, from the program's first line on; the exit status."""
    trace: TracebackType | None = error.__traceback__
    own = error.__traceback__ = _users(trace.tb_next if trace is not None else None)
    why = _why(error)
    if why:
        error.add_note(why)
    if isinstance(error, KeyboardInterrupt):
        sys.excepthook(type(error), error, own)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    sys.excepthook(type(error), error, own)
    return 1


def _users(trace: TracebackType | None) -> TracebackType | None:
    """A traceback up to where a name was looked up."""
    at = trace
    while at is not None and at.tb_next is not None:
        if at.tb_next.tb_frame.f_globals.get("__name__") == "weft.mirror.mirror":
            at.tb_next = None
            break
        at = at.tb_next
    return trace


def _why(error: BaseException) -> str:
    """What is known of a method or attribute that Weft lacks; of a package that is missing."""
    if isinstance(error, AttributeError) and error.obj is not None:
        kind = error.obj if isinstance(error.obj, type) else type(error.obj)
        names = [name for name in _CLASSES if kind is found(name)]
        return "; ".join([table.missing(f"{name}.{error.name}") for name in names])
    package = error.name if isinstance(error, ModuleNotFoundError) else None
    if package and "." not in package and package not in table.LIBRARIES:
        return f"weft run: {package} is not installed in {sys.prefix}"
    return ""
