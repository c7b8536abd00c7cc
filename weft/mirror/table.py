"""The names of other libraries: where Weft has them, and why it has others not.

Seven files, one row a line; `#` begins a comment:

- `modules.txt`: a module, or several as `a.{b,c}`, then Weft's modules that answer for it, the
  first with a name wins;
- `names.txt`: a name that has another name or place in Weft, then that place;
- `later.txt`: a name that packages import at their top and most programs do not use: it is given,
  and raises where it is used; `a.b.*` is a module without names, `a.{b,c}` are several;
- `tensorflow2.txt`: names and modules that mean something else in TensorFlow 2, and their places;
- `tensorflow2_arguments.txt`: functions whose arguments TensorFlow 2 orders or names otherwise, and
  these in its order, with `=` and Weft's name where that is another;
- `tensorflow1.txt`: names that TensorFlow 2 has not;
- `absent.txt`: a name, or `a.b.*` for all below, then `|`, why it is absent, and what to do.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Final

LIBRARIES: Final = {
    "torch": "2.13.0", "lightning": "2.6.6", "pytorch_lightning": "2.6.6",
    "lightning_fabric": "2.6.6", "torchmetrics": "1.9.0", "horovod": "0.28.1",
    "tensorflow": "1.15.5", "keras": "2.15.0", "tf_keras": "2.15.0", "jax": "0.10.2",
    "jaxlib": "0.10.2",
}  # fmt: skip
"""The libraries that Weft answers for, and whose version's names it has."""
_FILE_OF_2: Final = "tensorflow2.txt"
JAX: Final = ("jax", "jaxlib")
TENSORFLOW: Final = ("tensorflow", "keras", "tf_keras")
BACKEND: Final = "KERAS_BACKEND"
"""What says that an installed Keras 3 computes by another library than TensorFlow."""
TORCH: Final = tuple([name for name in LIBRARIES if name not in (*JAX, *TENSORFLOW)])


def _rows(file: str) -> list[str]:
    text = files("weft.mirror").joinpath(file).read_text(encoding="utf-8")
    return [line for row in text.splitlines() if (line := row.partition("#")[0].strip())]


ALIASES: Final = {
    "pytorch_lightning": "lightning.pytorch", "lightning_fabric": "lightning.fabric",
    "tensorflow.python.keras": "tensorflow.keras", "tensorflow.contrib.keras": "tensorflow.keras",
    "tensorflow.contrib.keras.api.keras": "tensorflow.keras",
    "tensorflow.contrib.keras.python.keras": "tensorflow.keras",
    "keras": "tensorflow.keras", "tf_keras": "tensorflow.keras",
    "tensorflow.compat.v1": "tensorflow", "tensorflow._api.v1": "tensorflow",
    "tensorflow.compat.v1.compat.v1": "tensorflow", "tensorflow.compat.v2": "tensorflow",
}  # fmt: skip
"""Modules with the names of another, and those below with the names of the others below."""


def aliased(rows: dict[str, str]) -> dict[str, str]:
    """The rows of the aliases."""
    return {
        new + name.removeprefix(old): to
        for new, old in ALIASES.items()
        for name, to in rows.items()
        if f"{name}.".startswith(f"{old}.")
    }


class _TensorFlow:
    """Which version's names programs are given."""

    version = 1


def tensorflow_version() -> int:
    """1 or 2."""
    return _TensorFlow.version


def use_tensorflow(version: int) -> None:
    """Give programs the names of TensorFlow 1 or 2."""
    _TensorFlow.version = version
    for kept in (modules, names, arguments_of_2):
        kept.cache_clear()


def _of_2(is_module: bool) -> dict[str, str]:
    """The rows of TensorFlow 2: those of modules, or those of names."""
    if _TensorFlow.version == 1:
        return {}
    rows = {name: to.strip() for name, _, to in [r.partition(" ") for r in _rows(_FILE_OF_2)]}
    return {name: to for name, to in rows.items() if is_module == (":" not in to)}


@cache
def arguments_of_2() -> dict[str, dict[str, str]]:
    """By a function's name: the arguments that TensorFlow 2 has otherwise, and their names in Weft.

    Empty for programs of TensorFlow 1.
    """
    if _TensorFlow.version == 1:
        return {}
    found: dict[str, dict[str, str]] = {}
    for row in _rows("tensorflow2_arguments.txt"):
        name, *arguments = row.split()
        parts = [argument.partition("=") for argument in arguments]
        found[name] = {new: own or new for new, _, own in parts}
    return found


@cache
def only_in_1() -> frozenset[str]:
    """Names that TensorFlow 2 has not; `a.b.*` is a module."""
    return frozenset(_rows("tensorflow1.txt"))


@cache
def modules() -> dict[str, tuple[str, ...]]:
    """By a module's name: Weft's modules that have its names.

    >>> modules()["torch.nn.modules.container"]
    ('weft.nn',)
    """
    parts = [row.partition(" ") for row in _rows("modules.txt")]
    rows = {name: to.strip() for several, _, to in parts for name in _each(several)}
    rows = rows | aliased(rows) | _of_2(True)  # `tensorflow.compat.v1` is that of both versions
    rows = dict.fromkeys(_parents([*later(), *rows]), "") | rows
    return {name: tuple(to.split()) for name, to in rows.items()}


def _each(several: str) -> list[str]:
    """The names that `a.{b,c}` stands for."""
    start, _, rest = several.partition("{")
    return [start + leaf for leaf in rest.rstrip("}").split(",")] if rest else [several]


def _parents(paths: Iterable[str]) -> set[str]:
    """All modules that dotted names lie in."""
    parts = [path.split(".") for path in paths]
    return {".".join(part[:n]) for part in parts for n in range(1, len(part))}


@cache
def names() -> dict[str, str]:
    """By a name: its place in Weft, `module:name`.

    >>> names()["lightning.pytorch.LightningModule"]
    'weft.train:Module'
    """
    rows = {name: to.strip() for name, _, to in [row.partition(" ") for row in _rows("names.txt")]}
    return rows | aliased(rows) | _of_2(False)


@cache
def later() -> frozenset[str]:
    """Names that are given although Weft lacks them, and raise where they are used."""
    rows = dict.fromkeys([name for row in _rows("later.txt") for name in _each(row)], "")
    return frozenset(rows | aliased(rows))


@cache
def reasons() -> dict[str, str]:
    """By a name, or `a.b.*`: why Weft lacks it, and what to write."""
    parts = [row.partition("|") for row in _rows("absent.txt")]
    rows = {name.strip(): why.strip() for name, _, why in parts}
    return rows | aliased(rows)


def reason(path: str) -> str:
    """Why Weft lacks a name, and what to write; empty where nothing is known.

    >>> reason("torch.jit.load")
    "there is no TorchScript: build the model in Python and load its state_dict"
    """
    known = reasons()
    if path in known:
        return known[path]
    while path:
        if f"{path}.*" in known:
            return known[f"{path}.*"]
        path = path.rpartition(".")[0]
    return ""


@cache
def missing(path: str) -> str:
    """The message of an error about a name that Weft lacks.

    >>> missing("torch.set_default_tensor_type")
    'torch.set_default_tensor_type: Weft has none: write torch.set_default_dtype(torch.float32)'
    """
    why = reason(path)
    return f"{path}: Weft has none: {why}" if why else f"{path}: Weft has none"
