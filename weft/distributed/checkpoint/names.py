"""Names of parameters as they are without `DistributedDataParallel`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from weft.nn.module.module import Module
from weft.nn.parallel.data_parallel import DistributedDataParallel

_WRAPPED = "module."


def wrappers(model: Module) -> list[str]:
    """The paths before the names that `DistributedDataParallel` adds, the longest first."""
    named = model.named_modules(remove_duplicate=False)
    paths = [path for path, module in named if isinstance(module, DistributedDataParallel)]
    return sorted([f"{path}." if path else "" for path in paths], key=len, reverse=True)


def canonical(key: str, places: Sequence[str]) -> str:
    """A name without what wrappers at these places add."""
    for place in places:
        if key.startswith(place + _WRAPPED):
            key = place + key[len(place) + len(_WRAPPED) :]
    return key


def parameter_names(model: Module) -> dict[int, list[str]]:
    """The names of each parameter, by its identity; several if it has several places."""
    places = wrappers(model)
    found: dict[int, list[str]] = {}
    for path, p in model.named_parameters(remove_duplicate=False):
        found.setdefault(id(p), []).append(canonical(path, places))
    return found


def parameters(model: Module) -> dict[str, Any]:
    """The parameters by name."""
    places = wrappers(model)
    named = model.named_parameters(remove_duplicate=False)
    return {canonical(path, places): p for path, p in named}


def below(model: Module, submodules: Iterable[Module]) -> list[str]:
    """What the names of the parameters of some modules begin with."""
    places, wanted = wrappers(model), {id(module) for module in submodules}
    named = model.named_modules(remove_duplicate=False)
    return [f"{canonical(path, places)}." for path, module in named if id(module) in wanted]
