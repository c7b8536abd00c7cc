"""`python -m tools.stubs`: writes the type stubs of names that come from tables.

Editors and type checkers read `weft/eager/tensor/tensor.pyi` and `weft/numpy/array.pyi` (methods)
and `weft/eager/functions/api.pyi` (the functions `weft.NAME`). They are made from the faces of
operations, `weft/eager/functions/table.py` and `weft/numpy/method.py`; so are those of modules
whose functions are built from faces. A test compares them.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import weft.numpy.declared
import weft.scipy.special
import weft.special
import weft.tf1.elementwise.declared
from weft import Tensor  # importing it adds methods from their own modules, such as `stft`
from weft.eager.functions import table
from weft.eager.functions.elementwise import declared
from weft.numpy import ndarray

ROOT: Final = Path(__file__).resolve().parent.parent
MODULES: Final = (
    declared,
    weft.numpy.declared,
    weft.tf1.elementwise.declared,
    weft.special,
    weft.scipy.special,
)
RESULTS: Final = {
    "Tensor": "weft.eager.tensor.tensor",
    "ndarray": "weft.numpy.array",
}
"""Classes of results, where a stub imports them from."""
HEAD: Final = '"""Made by `python -m tools.stubs`."""\n\n'
BUILTINS: Final = ("bool", "bytes", "complex", "float", "int", "str")
"""Types that a tensor has methods of the same name of, so that a stub spells them out."""
PLAIN: Final = frozenset({"Any", "None", "Tensor", "ndarray", "tuple", "list", "dict", *BUILTINS})
STUBBED: Final = {"Tensor": "weft.eager.tensor.tensor"}
"""Classes that say they are in another module, where their users find them."""


def rendered() -> dict[Path, str]:
    """The text of each stub, by its path."""
    return {
        ROOT / "weft/eager/tensor/tensor.pyi": _class(Tensor),
        ROOT / "weft/numpy/array.pyi": _class(ndarray),
        ROOT / "weft/eager/functions/api.pyi": _api(),
        **{_path(module): _functions(module) for module in MODULES},
    }


def _path(module: ModuleType) -> Path:
    return ROOT / (module.__name__.replace(".", "/") + ".pyi")


def _functions(module: ModuleType) -> str:
    """A module whose functions are built from faces, with the functions that it defines itself."""
    written = [
        name
        for name, member in vars(module).items()
        if name[0] != "_" and getattr(member, "__module__", "") == module.__name__
    ]
    names = sorted({*written, *module.__all__})
    functions = {name: getattr(module, name) for name in names}
    results = sorted({_returned(f, True) for f in functions.values()} & {*RESULTS})
    imports = "".join(f"from {RESULTS[name]} import {name}\n" for name in results)
    text = "".join(_function(name, function) for name, function in functions.items())
    shown = "".join(f'    "{name}",\n' for name in module.__all__)
    return (
        f"{HEAD}import builtins\nfrom typing import Any\n\n{imports}\n{text}\n"
        f"__all__ = [\n{shown}]\n"
    )


def _function(name: str, function: Any) -> str:
    doc = (function.__doc__ or "").partition("\n")[0]
    head = f"def {name}({_parameters(function, ())}) -> {_returned(function, True)}:"
    return f'{head}\n    """{doc}"""\n'


def _api() -> str:
    lines = ["from weft.eager.tensor.tensor import Tensor as Tensor"]
    for row in table.rows():
        if table.Form.FUNCTION in row.forms:
            lines.append(f"from {row.module} import {row.own} as {row.name}")
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


def _parameters(function: Any, first: tuple[str, ...] = ("self",)) -> str:
    """The parameters as in a stub, `first` in place of as many."""
    found = [*first]
    star = False
    parameters = list(_signature(function, not first).parameters.values())
    for parameter in parameters[len(first) :]:
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
    only = [p for p in parameters if p.kind is p.POSITIONAL_ONLY]
    if only and not first:
        found.insert(len(only), "/")
    return ", ".join(found)


def _signature(function: Any, own: bool) -> inspect.Signature:
    """The signature, with `own` that of the function itself where it wraps another."""
    return inspect.signature(function, follow_wrapped=not own)


def _returned(function: Any, own: bool = False) -> str:
    return _type(_signature(function, own).return_annotation)


def _type(annotation: Any) -> str:
    """A type as far as a stub without other imports can name it; else `Any`."""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "Any")
    text = text.replace("builtins.", "").replace("Self", "Tensor")
    if not set(re.findall(r"\w+", text)) <= PLAIN or "..." in text.replace(", ...]", ""):
        return "Any"
    return re.sub(rf"\b({'|'.join(BUILTINS)})\b", r"builtins.\1", text)


def main() -> None:
    """Write the stubs."""
    for path, text in rendered().items():
        path.write_text(text)


if __name__ == "__main__":
    main()
