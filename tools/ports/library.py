"""The module `torch` for a network: Weft, and stubs of PyTorch's compilers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import weft
from tools.suites import pytorch
from tools.suites.absent import Absent
from tools.suites.mirror import Library


def library() -> Library:
    """The table of names."""
    # Some packages wrap this method of PyTorch's; Weft's modules are where they are.
    setattr(weft.nn.Module, "cuda", Absent("torch.nn.Module.cuda"))  # noqa: B010
    return Library("torch", Path(__file__).parent, pytorch.MODULES, supplied())


def supplied() -> dict[str, dict[str, Any]]:
    """Queries that return false, and decorators that do nothing."""
    table = pytorch.supplied()
    table["torch"] = {
        **table["torch"],
        "__version__": "2.9.0",  # whose features packages may use
        "_assert": check,
        "finfo": finfo,
    }
    table["torch._C"] = {**table["torch._C"], "_log_api_usage_once": no, "_get_tracing_state": no}
    table["torch._dynamo"] = {
        "is_compiling": no, "disable": same, "allow_in_graph": same, "mark_static_address": no,
    }  # fmt: skip
    table["torch.compiler"] = {
        "is_compiling": no, "is_dynamo_compiling": no, "is_exporting": no, "disable": same,
    }  # fmt: skip
    table["torch.distributed"] = {"is_available": no, "is_initialized": no}
    table["torch.fx"] = {"wrap": same, "Proxy": Nothing, "Tracer": Nothing, "GraphModule": Nothing}
    table["torch.hub"] = {"get_dir": lambda: "", "_get_torch_home": lambda: ""}
    table["torch.ops"] = {"load_library": refuse}
    decorators = ("unused", "ignore", "export", "script", "script_if_tracing", "interface")
    table["torch.jit"] = {
        **dict.fromkeys(decorators, same),
        "is_scripting": no, "is_tracing": no, "annotate": lambda kind, value: value,
        "Final": Final, "ScriptModule": Nothing, "ScriptFunction": Nothing,
    }  # fmt: skip
    table["torch.jit"]["_script_if_tracing"] = same
    return table


class Nothing:
    """A class without instances."""


def no(*arguments: Any) -> bool:
    """Nothing is compiled, traced or distributed."""
    return False


def same(function: Any = None, **options: Any) -> Any:
    """A decorator, with or without arguments, that returns functions unchanged."""
    return _left if function is None else function


def _left(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


def refuse(path: str) -> None:
    """There are no C++ operators for PyTorch."""
    raise OSError(f"{path}: is for PyTorch")


def check(condition: Any, message: str = "") -> None:
    """An assertion that PyTorch can trace."""
    assert condition, message


def finfo(dtype: Any = None) -> Any:
    """Limits of a dtype; absent dtypes have none."""
    return Absent("torch.finfo()") if isinstance(dtype, Absent) else weft.finfo(dtype)
