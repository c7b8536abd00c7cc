"""`python -m tools.undocumented` lists public objects that leave an argument undocumented.

Layers, optimizers, schedulers, callbacks, metrics and dataset functions have a docstring whose
section `Args:` (`Attributes:` of a dataclass) names every argument of the signature:

    Args:
        lr: the learning rate.
        beta1, beta2: how much of either running mean stays at a step.
        size (int): the length of a side.

The section stands in the docstring of the class or in that of its constructor. A function of one
argument may name it in backticks in its first paragraph instead.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from enum import Enum
from typing import Any, Final, cast

# Each face, and the classes whose methods are dataset functions
FACES: Final[dict[str, tuple[str, ...]]] = {
    "weft.nn": (), "weft.nn.functional": (), "weft.nn.init": (), "weft.nn.utils": (),
    "weft.nn.utils.parametrizations": (), "weft.nn.utils.parametrize": (),
    "weft.nn.utils.prune": (), "weft.nn.utils.rnn": (), "weft.nn.grad": (), "weft.nn.parallel": (),
    "weft.optim": (), "weft.optim.lr_scheduler": (), "weft.optim.swa_utils": (),
    "weft.train": (), "weft.train.callbacks": (), "weft.train.loggers": (),
    "weft.data": ("Dataset",), "weft.data.transforms": (), "weft.utils.data": (),
    "weft.datasets": (), "weft.metrics": (),
    "weft.tf1.layers": (), "weft.tf1.nn.rnn_cell": (), "weft.tf1.keras": (),
    "weft.tf1.keras.constraints": (), "weft.tf1.keras.layers": (), "weft.tf1.keras.models": (),
    "weft.tf1.keras.regularizers": (), "weft.tf1.keras.optimizers": (),
    "weft.tf1.keras.callbacks": (), "weft.tf1.train": (), "weft.tf1.data": ("Dataset",),
    "weft.tf1.metrics": (), "weft.tf1.summary": (), "weft.tf1.estimator": (),
    "weft.distributed": (), "weft.distributed.checkpoint": (),
    "weft.distributed.checkpoint.state_dict": (), "weft.distributed.fsdp": (),
    "weft.distributed.pipelining": (), "weft.distributed.tensor": (),
    "weft.distributed.tensor.parallel": (), "weft.horovod.torch": (), "weft.horovod.tensorflow": (),
    "weft.horovod.keras": (), "weft.horovod.keras.callbacks": (),
}  # fmt: skip
SECTION: Final = re.compile(r"^( *)(?:Args|Attributes):\n((?:\1 +.*\n|\s*\n)*)", re.MULTILINE)
ENTRY: Final = re.compile(r"^([*\w]+(?:(?:, | and )[*\w]+)*)(?: \([^)]*\))?:", re.MULTILINE)


def documented(text: str) -> set[str]:
    """The arguments that the sections of a docstring name.

    >>> text = "Sum.\\n\\nArgs:\\n    x, y: the\\n        terms: two.\\n    n (int): how often.\\n"
    >>> sorted(documented(text))
    ['n', 'x', 'y']
    """
    named: set[str] = set()
    for section in SECTION.finditer(inspect.cleandoc(text) + "\n"):
        for entry in ENTRY.finditer(textwrap.dedent(section[2])):
            named |= set(re.split(r", | and ", entry[1]))
    return named


def arguments(of: Any) -> list[str]:
    """The arguments that a caller names; none where Python cannot tell."""
    try:
        parameters = inspect.signature(of).parameters.values()
    except (TypeError, ValueError):
        return []
    open_ended = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    named = [p.name for p in parameters if p.kind not in open_ended]
    return [name for name in named if name != "self" and not name.startswith("_")]


def missing(of: Any) -> list[str] | None:
    """The arguments that the docstring does not name, or None if there is no docstring."""
    text = cast("str | None", of.__doc__)
    if not text or not text.strip():
        return None
    names = arguments(of)
    named = documented(text)
    if isinstance(of, type):
        named |= documented(of.__init__.__doc__ or "")
    first = inspect.cleandoc(text).split("\n\n")[0]
    if len(names) == 1 and re.search(rf"`\*?{names[0]}\b", first):
        return []
    return [name for name in names if name not in named]


def public(face: str, classes: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """The functions and classes of Weft that a module offers, and the methods of `classes`."""
    module = importlib.import_module(face)
    for name in sorted(getattr(module, "__all__", None) or vars(module)):
        thing = getattr(module, name)
        owner = getattr(thing, "__module__", None) or ""
        skipped = inspect.ismodule(thing) or (isinstance(thing, type) and issubclass(thing, Enum))
        if name.startswith("_") or not callable(thing) or skipped or not owner.startswith("weft"):
            continue
        yield name, thing
        if name in classes:
            for method in sorted(n for n in dir(thing) if not n.startswith("_")):
                if inspect.isroutine(getattr(thing, method)):
                    yield f"{name}.{method}", getattr(thing, method)


def undocumented() -> dict[str, dict[str, list[str] | None]]:
    """Of each face, the objects that are not documented; each stands under its first face only."""
    seen: set[int] = set()
    faces: dict[str, dict[str, list[str] | None]] = {}
    for face, classes in FACES.items():
        faces[face] = {}
        for name, thing in public(face, classes):
            left = missing(thing)
            if left != [] and id(thing) not in seen:
                faces[face][name] = left
            seen.add(id(thing))
    return faces


def main(only: list[str]) -> None:
    """Print what is missing, of the faces named or of all, and the number of each."""
    faces = {face: names for face, names in undocumented().items() if not only or face in only}
    for face, names in faces.items():
        for name, left in names.items():
            print(f"{face}.{name}: {'no docstring' if left is None else ', '.join(left)}")
    for face, names in faces.items():
        print(f"{len(names):5} {face}")
    print(f"{sum(map(len, faces.values())):5} in all")


if __name__ == "__main__":
    main(sys.argv[1:])
