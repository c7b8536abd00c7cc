"""Imports of other libraries' names lead to mirrors of Weft; also in processes that are started."""

from __future__ import annotations

import multiprocessing.spawn
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from email.message import Message
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import Distribution, DistributionFinder
from types import ModuleType
from typing import Any

from weft.eager.tensor.tensor import Tensor
from weft.errors import StateError
from weft.host.cores import name_ranks
from weft.ir.dtype import DType
from weft.mirror import table
from weft.mirror.lacking import is_given_module
from weft.mirror.mirror import Mirror, found


class MirrorLoader(Loader):
    """Makes mirrors."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """An empty mirror."""
        return Mirror(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Names are looked up on first use; TensorFlow 2 is eager from the start."""
        if module.__name__ == "torch":
            DType.prefix = "torch."  # programs take `str(dtype)` apart
        if module.__name__ in table.TENSORFLOW and table.tensorflow_version() == 2:
            found("tensorflow.enable_v2_behavior")()


class Installed(Distribution):
    """What tools that ask for a library's version are told."""

    def __init__(self, library: str) -> None:
        self.library = library

    def read_text(self, filename: str) -> str | None:
        """The text of a file with facts about the library."""
        if filename != "METADATA":
            return None
        message = Message()
        message["Metadata-Version"] = "2.1"
        message["Name"] = self.library
        message["Version"] = table.LIBRARIES[self.library]
        return message.as_string()

    def locate_file(self, path: Any) -> Any:
        """There are no files.

        Raises:
            FileNotFoundError: always.
        """
        raise FileNotFoundError(f"{self.library} is Weft here: it has no file {path}")


class Finder(MetaPathFinder):
    """Finds the mirrors, and their versions, before anything that is installed.

    Attributes:
        libraries: those that it answers for.
    """

    def __init__(self) -> None:
        self.libraries: set[str] = set()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a module of a mirrored library; None for others.

        Raises:
            ModuleNotFoundError: Weft lacks the module.
        """
        del target
        library = fullname.partition(".")[0]
        if _is_a_choice(fullname):
            return None
        if fullname in table.modules() and (
            library in self.libraries or _is_part(library, fullname, path)
        ):
            return ModuleSpec(fullname, MirrorLoader(), is_package=True)
        if library not in self.libraries:
            return None
        if _is_question():
            return None
        if is_given_module(fullname, sys._getframe(1)):  # pyright: ignore[reportPrivateUsage]
            return ModuleSpec(fullname, MirrorLoader(), is_package=True)
        raise ModuleNotFoundError(table.missing(fullname), name=fullname)

    def find_distributions(
        self, context: DistributionFinder.Context | None = None
    ) -> Iterable[Distribution]:
        """The versions of mirrored libraries."""
        name = getattr(context, "name", None)
        asked = self.libraries if name is None else [name.replace("-", "_").lower()]
        return [Installed(library) for library in asked if library in self.libraries]


def _is_part(library: str, fullname: str, path: Sequence[str] | None) -> bool:
    """Whether Weft answers for a module of another package, of which it has only a few.

    What such modules lie in is the installed package's, if there is one.
    """
    if library in table.LIBRARIES:
        return False
    return bool(table.modules()[fullname]) or PathFinder.find_spec(fullname, path) is None


def _is_a_choice(fullname: str) -> bool:
    """Whether an installed package for PyTorch or JAX asks whether there is TensorFlow, too.

    It would use both, or prefer the other one.
    """
    if fullname != "tensorflow" or sys.modules.keys().isdisjoint(("torch", "jax")):
        return False
    frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("importlib"):
        frame = frame.f_back
    file = "" if frame is None else str(frame.f_globals.get("__file__"))
    return f"{os.sep}site-packages{os.sep}" in file


def _is_question() -> bool:
    """Whether `importlib.util.find_spec` only asks whether there is a module."""
    frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and frame.f_globals.get("__name__") == "importlib._bootstrap":
        frame = frame.f_back
    return frame is not None and frame.f_globals.get("__name__") == "importlib.util"


def install(libraries: Iterable[str] = tuple(table.LIBRARIES)) -> None:
    """Let Weft answer imports of libraries' names, from now on; again does nothing.

    Raises:
        StateError: the program has imported one of the libraries already.
    """
    finder = next((f for f in sys.meta_path if isinstance(f, Finder)), None)
    new = set(libraries).difference(() if finder is None else finder.libraries)
    if os.environ.get(table.BACKEND, "tensorflow") != "tensorflow":
        new.discard("keras")  # an installed Keras 3, which computes by a mirror
    loaded = [name for name in table.LIBRARIES if name in new and name in sys.modules]
    if loaded:
        raise StateError.here(
            f"weft.{_face(loaded[0])}: expected to be imported before {loaded[0]}: make it the "
            "first line"
        )
    table.modules()  # read before imports ask for it
    if finder is None:
        finder = Finder()
        sys.meta_path.insert(0, finder)
        multiprocessing.spawn.get_preparation_data = _prepared(
            multiprocessing.spawn.get_preparation_data, finder
        )
    if "torch" in new:
        Tensor.__module__ = "torch"  # packages that do not import PyTorch ask for it
        name_ranks()  # programs for `torchrun` read the environment first
    finder.libraries.update(new)


def _face(library: str) -> str:
    """The module to import for a library."""
    if library in table.JAX:
        return "as_jax"
    return "as_tensorflow" if library in table.TENSORFLOW else "as_torch"


class _Installed:
    """Installs the same libraries where it is unpickled."""

    def __init__(self, finder: Finder) -> None:
        self.libraries = tuple(sorted(finder.libraries))

    def __reduce__(self) -> tuple[Callable[..., None], tuple[tuple[str, ...]]]:
        return install, (self.libraries,)


def _prepared(
    before: Callable[[str], dict[str, Any]], finder: Finder
) -> Callable[[str], dict[str, Any]]:
    """What a new process is told first, beside which it installs the same."""

    def get_preparation_data(name: str) -> dict[str, Any]:
        return {"weft": _Installed(finder), **before(name)}

    return get_preparation_data
