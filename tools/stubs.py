"""`python -m tools.stubs`: writes the type stubs of names that come from tables.

Editors and type checkers read `weft/eager/tensor/tensor.pyi` and `weft/numpy/array.pyi` (methods)
and `weft/eager/functions/api.pyi` (the functions `weft.NAME`). They are made from
`weft/eager/functions/table.py` and `weft/numpy/method.py`; those of Horovod's collectives from
`weft/horovod/collective_table.py`. A test compares them.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import weft.horovod.keras.collective
import weft.horovod.tensorflow.collective
import weft.horovod.torch.collective
from weft import Tensor  # importing it adds methods from their own modules, such as `stft`
from weft.eager.functions import table
from weft.numpy import ndarray

ROOT: Final = Path(__file__).resolve().parent.parent
HEAD: Final = '"""Made by `python -m tools.stubs`."""\n\n'
BUILTINS: Final = ("bool", "bytes", "complex", "float", "int", "str")
"""Types that a tensor has methods of the same name of, so that a stub spells them out."""
PLAIN: Final = frozenset({"Any", "None", "Tensor", "ndarray", "tuple", "list", "dict", *BUILTINS})
STUBBED: Final = {"Tensor": "weft.eager.tensor.tensor"}
"""Classes that say they are in another module, where their users find them."""

HOROVOD: Final = [
    weft.horovod.keras.collective,
    weft.horovod.tensorflow.collective,
    weft.horovod.torch.collective,
]
"""Modules of functions that are made from a table; their stubs have docstrings, too."""
TYPES: Final = {
    "Sequence": "collections.abc",
    "Any": "typing",
    "Tensor": "weft.eager.tensor.tensor",
    "Compressor": "weft.horovod.compression",
    "ProcessSet": "weft.horovod.process_set",
    "Reduction": "weft.horovod.reduction",
    "Operation": "weft.tf1.framework.tensor",
}
"""Where the types in their signatures are defined."""


def rendered() -> dict[Path, str]:
    """The text of each stub, by its path."""
    return {
        ROOT / "weft/eager/tensor/tensor.pyi": _class(Tensor),
        ROOT / "weft/numpy/array.pyi": _class(ndarray),
        ROOT / "weft/eager/functions/api.pyi": _api(),
        **{Path(str(m.__file__)).with_suffix(".pyi"): _functions(m) for m in HOROVOD},
    }


def _functions(module: ModuleType) -> str:
    """The functions that a module defines, as they are declared and documented."""
    body = "".join(
        f"def {name}{_declared(each)}:\n    {_quoted(each.__doc__)}\n\n"
        for name, each in vars(module).items()
        if inspect.isfunction(each) and each.__module__ == module.__name__ and name[0] != "_"
    )
    names = "".join(f'    "{name}",\n' for name in module.__all__)
    used = [(where, name) for name, where in TYPES.items() if re.search(rf"\b{name}\b", body)]
    imports = "".join(f"from {where} import {name}\n" for where, name in used)
    return f"{HEAD}{imports}\n{body}__all__ = [\n{names}]\n"


def _declared(function: Any) -> str:
    """A signature whose annotations are text."""
    parameters = [
        f"{p.name}: {p.annotation}" + ("" if p.default is p.empty else " = ...")
        for p in inspect.signature(function).parameters.values()
    ]
    return f"({', '.join(parameters)}) -> {inspect.signature(function).return_annotation}"


def _quoted(text: str | None) -> str:
    lines = inspect.cleandoc(text or "").replace("\\", "\\\\").split("\n")
    ending = '"""' if len(lines) == 1 else '\n    """'
    return '"""' + "\n".join(f"    {line}".rstrip() for line in lines).strip() + ending


def _api() -> str:
    lines = ["from weft.eager.tensor.tensor import Tensor as Tensor"]
    for row in table.TABLE:
        if table.Form.FUNCTION in row.forms:
            module = row.module.__name__
            lines += [f"from {module} import {name} as {name}" for name in row.names.split()]
    names = sorted(line.rpartition(" ")[2] for line in lines)
    shown = "".join(f'    "{name}",\n' for name in names)
    text = "\n".join(sorted(lines))
    return f"{HEAD}from typing import Any\n\n{text}\n\nOUT: dict[str, Any]\n__all__ = [\n{shown}]\n"


def _class(cls: type[Any]) -> str:
    """A class with the members that tables and loops add, without those of its bases."""
    bases = ", ".join(base.__name__ for base in cls.__bases__)
    imports = "".join(
        f"from {STUBBED.get(base.__name__, base.__module__)} import {base.__name__}\n"
        for base in cls.__bases__
    )
    body = "".join(_member(name, member) for name, member in sorted(vars(cls).items()))
    return (
        f"# pyright: reportIncompatibleMethodOverride=false\n{HEAD}"
        f"import builtins\nfrom typing import Any\n\n{imports}\n"
        f"class {cls.__name__}({bases}):\n{body}"
    )


def _member(name: str, member: Any) -> str:
    if isinstance(member, property):
        text = f"    @property\n    def {name}(self) -> {_returned(member.fget)}: ...\n"
        if member.fset is not None:
            text += f"    @{name}.setter\n    def {name}(self, value: Any) -> None: ...\n"
        return text
    if not callable(member) or isinstance(member, type):
        return ""
    return f"    def {name}({_parameters(member)}) -> {_returned(member)}: ...\n"


def _parameters(function: Any) -> str:
    found = ["self"]
    star = False
    for parameter in list(inspect.signature(function).parameters.values())[1:]:
        kind = f": {_type(parameter.annotation)}"
        if parameter.kind is parameter.VAR_POSITIONAL:
            star = True
            found.append(f"*{parameter.name}{kind}")
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            found.append(f"**{parameter.name}{kind}")
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            star = True
            found.append("*")
        default = "" if parameter.default is parameter.empty else " = ..."
        found.append(f"{parameter.name}{kind}{default}")
    return ", ".join(found)


def _returned(function: Any) -> str:
    return _type(inspect.signature(function).return_annotation)


def _type(annotation: Any) -> str:
    """A type as far as a stub without other imports can name it; else `Any`."""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "Any")
    text = text.replace("builtins.", "").replace("Self", "Tensor")
    if not set(re.findall(r"\w+", text)) <= PLAIN or "..." in text.replace(", ...]", ""):
        return "Any"
    return re.sub(rf"\b({'|'.join(BUILTINS)})\b", r"builtins.\1", text)


def write(texts: dict[Path, str]) -> None:
    """Write stubs, each to its path."""
    for path, text in texts.items():
        path.write_text(text)


if __name__ == "__main__":
    write(rendered())
