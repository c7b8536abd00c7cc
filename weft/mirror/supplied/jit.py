"""`torch.jit`: `script` and `trace` give functions and modules back: Weft compiles by itself."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from typing import IO, Any, Final, TypeVar

from weft.errors import ArgumentError
from weft.mirror.supplied.same import no, same, second
from weft.nn.module.module import Module
from weft.serialization import load as load_file
from weft.serialization import save as save_file

__all__ = [
    "Attribute", "BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "Final",
    "RecursiveScriptModule", "ScriptFunction", "ScriptModule", "TracerWarning", "annotate",
    "export", "freeze", "ignore", "interface", "is_scripting", "is_tracing", "load",
    "optimize_for_inference", "save", "script", "script_if_tracing", "script_method", "trace",
    "trace_module", "unused",
]  # fmt: skip

T = TypeVar("T")


class TracerWarning(Warning):
    """What tracing warns of; programs filter it, and nothing is traced."""


class ScriptModule:
    """A module given back by `script` or `trace`: its own class comes first."""

    def save(
        self, f: str | os.PathLike[str] | IO[bytes], _extra_files: Mapping[str, Any] | None = None
    ) -> None:
        """Write the module to a file, as its class's name and its state: see `weft.save`.

        Raises:
            ArgumentError: there are extra files.
            DTypeError: it holds something that has no importable name, which the error names.
        """
        if _extra_files:
            raise ArgumentError.here("torch.jit.save: extra files are not written; save them apart")
        save_file(self, f)

    def __reduce__(self) -> tuple[Any, ...]:
        return script, (_of_class(self, type(self).__mro__[1]),)


class RecursiveScriptModule(ScriptModule):
    """A module given back by `script` or `trace`."""


class ScriptFunction:
    """The class of scripted functions, of which there are none."""


class _Repeated:
    """An annotation: a number, or as many numbers as are needed."""

    def __getitem__(self, kind: type[T]) -> Any:
        return list[kind]


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = _Repeated()
export = ignore = interface = script_if_tracing = script_method = unused = same
is_scripting = is_tracing = no
annotate = Attribute = second


def script(obj: Any = None, *arguments: Any, **options: Any) -> Any:
    """The function itself; of a module another one with the same parameters, which has `save`.

    >>> import weft as wf
    >>> net = wf.nn.Linear(2, 3)
    >>> scripted = script(net)
    >>> scripted.weight is net.weight, isinstance(scripted, ScriptModule)
    (True, True)
    """
    if not isinstance(obj, Module) or isinstance(obj, ScriptModule):
        return same(obj, *arguments, **options)
    return _of_class(obj, _scripted(type(obj)))


trace = trace_module = freeze = optimize_for_inference = script


@functools.cache
def _scripted(kind: type[Module]) -> type[Module]:
    inner = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    return type(kind.__name__, (kind, RecursiveScriptModule), inner)


def _of_class(module: Any, kind: type) -> Any:
    """An instance of another class with the module's parameters and parts."""
    found = object.__new__(kind)
    vars(found).update(vars(module))
    return found


def save(
    m: Any, f: str | os.PathLike[str] | IO[bytes], _extra_files: Mapping[str, Any] | None = None
) -> None:
    """Write a module to a file: `ScriptModule.save`."""
    script(m).save(f, _extra_files)


def load(f: Any, map_location: Any = None) -> Any:
    """The module of a file that `torch.jit.save` wrote here: its class is imported.

    Raises:
        DataError: PyTorch has written it: Weft does not run TorchScript.
    """
    return load_file(f, map_location, weights_only=False)
