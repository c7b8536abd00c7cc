"""`python -m tools.stubs`: writes the type stubs of names that come from tables.

Editors and type checkers read `weft/eager/tensor/tensor.pyi` and `weft/numpy/array.pyi` (methods)
and `weft/eager/functions/api.pyi` (the functions `weft.NAME`). They are made from
the faces of operations, `weft/eager/functions/table.py` and `weft/numpy/method.py`; so are those of
modules whose functions are built from faces, and those of Horovod's collectives from
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
import weft.numpy.declared
import weft.scipy.special
import weft.special
import weft.tf1.elementwise.declared
import weft.tf1.nn.activation
import weft.tf1.nn.pooling
import weft.tf1.reduction
from weft import Tensor  # importing it adds methods from their own modules, such as `stft`
from weft.distributed.tensor import pointwise
from weft.eager.functions import table
from weft.eager.functions.elementwise import declared
from weft.numpy import ndarray

ROOT: Final = Path(__file__).resolve().parent.parent
HEAD: Final = '"""Made by `python -m tools.stubs`."""\n\n'
BUILTINS: Final = ("bool", "bytes", "complex", "float", "int", "str")
"""Types that a tensor has methods of the same name of, so that a stub spells them out."""
PLAIN: Final = frozenset({"Any", "None", "Tensor", "ndarray", "tuple", "list", "dict", *BUILTINS})
STUBBED: Final = {"Tensor": "weft.eager.tensor.tensor"}
"""Classes that say they are in another module, where their users find them."""

MODULES: Final = (
    declared,
    weft.horovod.keras.collective,
    weft.horovod.tensorflow.collective,
    weft.horovod.torch.collective,
    weft.numpy.declared,
    weft.scipy.special,
    weft.special,
    weft.tf1.elementwise.declared,
    weft.tf1.nn.activation,
    weft.tf1.nn.pooling,
    weft.tf1.reduction,
)
"""Modules of functions that are made from a table or from faces."""
TYPES: Final = {
    "Sequence": "collections.abc",
    "Any": "typing",
    "Callable": "collections.abc",
    "ndarray": "weft.numpy.array",
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
        _path(pointwise): _class(pointwise.Arithmetic, "from collections.abc import Callable\n")
        + "".join(_function(name, getattr(pointwise, name)) for name in _defined(pointwise)),
        **{_path(module): _functions(module) for module in MODULES},
    }


def _path(module: ModuleType) -> Path:
    return Path(str(module.__file__)).with_suffix(".pyi")


def _functions(module: ModuleType) -> str:
    """The functions that a module defines or makes, as they are declared and documented."""
    names = dict.fromkeys([*_defined(module), *module.__all__])
    body = "".join(_function(name, getattr(module, name)) for name in names)
    listed = "".join(f'    "{name}",\n' for name in module.__all__)
    used = [(where, name) for name, where in TYPES.items() if re.search(rf"\b{name}\b", body)]
    imports = "".join(f"from {_home(module, *pair)} import {pair[1]}\n" for pair in used)
    return f"{HEAD}{imports}\n{body}__all__ = [\n{listed}]\n"


def _home(module: ModuleType, where: str, name: str) -> str:
    """Where a type of a module is defined."""
    type_ = getattr(module, name, Tensor)
    return where if type_ is Tensor else getattr(type_, "__module__", where)


def _defined(module: ModuleType) -> list[str]:
    """The functions that a module defines."""
    return [
        name
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and name[0] != "_"
    ]


def _function(name: str, function: Any) -> str:
    return f"def {name}{_declared(function)}:\n    {_quoted(function.__doc__)}\n\n"


def _declared(function: Any) -> str:
    """A signature with its annotations as text, and `...` for defaults.

    Of a wrapper that passes on any arguments, it is that of the inner one, and `out=`.
    """
    signature = inspect.signature(function, follow_wrapped=False)
    if "options" in signature.parameters:
        out = [p for p in signature.parameters.values() if p.kind is p.KEYWORD_ONLY]
        signature = inspect.signature(function)
        signature = signature.replace(parameters=[*signature.parameters.values(), *out])
    parameters = [
        p.replace(
            default=p.empty if p.default is p.empty else ...,
            annotation="Any" if p.annotation is p.empty else p.annotation,
        )
        for p in signature.parameters.values()
    ]
    text = str(signature.replace(parameters=parameters))
    return text.replace("'", "").replace("Ellipsis", "...")


def _quoted(text: str | None) -> str:
    lines = inspect.cleandoc(text or "").replace("\\", "\\\\").split("\n")
    ending = '"""' if len(lines) == 1 else '\n    """'
    return '"""' + "\n".join(f"    {line}".rstrip() for line in lines).strip() + ending


def _api() -> str:
    lines = ["from weft.eager.tensor.tensor import Tensor as Tensor"]
    for row in table.rows():
        if table.Form.FUNCTION in row.forms:
            lines.append(f"from {row.module} import {row.attribute} as {row.name}")
    names = sorted(line.rpartition(" ")[2] for line in lines)
    shown = "".join(f'    "{name}",\n' for name in names)
    text = "\n".join(sorted(lines))
    return f"{HEAD}from typing import Any\n\n{text}\n\nOUT: dict[str, Any]\n__all__ = [\n{shown}]\n"


def _class(cls: type[Any], further: str = "") -> str:
    """A class with the members that tables and loops add, without those of its bases."""
    bases = ", ".join(base.__name__ for base in cls.__bases__)
    imports = "".join(
        f"from {STUBBED.get(base.__name__, base.__module__)} import {base.__name__}\n"
        for base in cls.__bases__
    )
    body = "".join(_member(name, member) for name, member in sorted(vars(cls).items()))
    return (
        f"# pyright: reportIncompatibleMethodOverride=false\n{HEAD}"
        f"import builtins\n{further}from typing import Any\n\n{imports}\n"
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
    texts = ["self"]
    star = False
    for parameter in list(inspect.signature(function).parameters.values())[1:]:
        annotation = f": {_type(parameter.annotation)}"
        if parameter.kind is parameter.VAR_POSITIONAL:
            star = True
            texts.append(f"*{parameter.name}{annotation}")
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            texts.append(f"**{parameter.name}{annotation}")
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            star = True
            texts.append("*")
        default = "" if parameter.default is parameter.empty else " = ..."
        texts.append(f"{parameter.name}{annotation}{default}")
    return ", ".join(texts)


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
