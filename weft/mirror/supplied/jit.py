"""`torch.jit`: `script` and `trace` give functions and modules back: Weft compiles by itself."""

from __future__ import annotations

from typing import Any, Final, TypeVar

from weft.mirror.supplied.same import no, same, second
from weft.serialization import load as load_file

__all__ = [
    "Attribute", "BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "Final",
    "RecursiveScriptModule", "ScriptFunction", "ScriptModule", "annotate", "export", "freeze",
    "ignore", "interface", "is_scripting", "is_tracing", "load", "optimize_for_inference", "script",
    "script_if_tracing", "script_method", "trace", "unused",
]  # fmt: skip

T = TypeVar("T")


class ScriptModule:
    """The class of scripted modules, of which there are none."""


class RecursiveScriptModule(ScriptModule):
    """The class of scripted modules, of which there are none."""


class ScriptFunction:
    """The class of scripted functions, of which there are none."""


class _Repeated:
    """An annotation: a number, or as many numbers as are needed."""

    def __getitem__(self, kind: type[T]) -> Any:
        return list[kind]


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = _Repeated()
script = trace = freeze = optimize_for_inference = same
export = ignore = interface = script_if_tracing = script_method = unused = same
is_scripting = is_tracing = no
annotate = Attribute = second


def load(f: Any, map_location: Any = None) -> Any:
    """The module of a file that `torch.jit.save` wrote here: its class is imported.

    Raises:
        DataError: PyTorch has written it: Weft does not run TorchScript.
    """
    return load_file(f, map_location, weights_only=False)
