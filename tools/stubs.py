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
from weft.distributed.tensor import pointwise
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
"""Classes of results, and where a stub imports them from if the module does not say it."""
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
        _path(pointwise): _class(pointwise.Arithmetic) + _own_functions(pointwise),
        ROOT / "weft/eager/functions/api.pyi": _api(),
        **{_path(module): _functions(module) for module in MODULES},
    }


def _path(module: ModuleType) -> Path:
    return ROOT / (module.__name__.replace(".", "/") + ".pyi")


def _functions(module: ModuleType) -> str:
    """A module whose functions are built from faces, with the functions that it defines itself."""
    functions = [getattr(module, name) for name in module.__all__]
    results = sorted({_returned(f, True) for f in functions} & {*RESULTS})
    homes = [getattr(getattr(module, name, None), "__module__", RESULTS[name]) for name in results]
    imports = "".join(
        f"from {home} import {name}\n" for home, name in zip(homes, results, strict=True)
    )
    pairs = sorted(zip(module.__all__, functions, strict=True), key=lambda pair: pair[0])
    built = "".join(_function(*pair) for pair in pairs)
    shown = "".join(f'    "{name}",\n' for name in module.__all__)
    return (
        f"{HEAD}import builtins\nfrom typing import Any\n\n{imports}\n{built}"
        f"{_own_functions(module)}\n__all__ = [\n{shown}]\n"
    )


def _own_functions(module: ModuleType) -> str:
    """The functions that a module defines and does not list as public."""
    public = getattr(module, "__all__", ())
    return "".join(
        _function(name, member)
        for name, member in vars(module).items()
        if name[0] != "_" and name not in public and inspect.isfunction(member)
        and member.__module__ == module.__name__
    )  # fmt: skip


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
    """The signature, with `own` that of the function itself where it wraps another.

    Of a wrapper that passes on any arguments, it is that of the inner one, and `out=`.
    """
    inner, outer = (inspect.signature(function, follow_wrapped=wrapped) for wrapped in (True, False))
    if not own or "options" not in outer.parameters:
        return outer if own else inner
    out = [p for p in outer.parameters.values() if p.kind is p.KEYWORD_ONLY]
    return inner.replace(parameters=[*inner.parameters.values(), *out])


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
