"""Names of parameters without the prefixes of `DistributedDataParallel`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from weft.nn.module.module import Module
from weft.nn.parallel.data_parallel import DistributedDataParallel

_WRAPPED = "module."


def wrappers(model: Module) -> list[str]:
    """The paths of `DistributedDataParallel` wrappers in a model, the longest first."""
    named = model.named_modules(remove_duplicate=False)
    paths = [path for path, module in named if isinstance(module, DistributedDataParallel)]
    return sorted([f"{path}." if path else "" for path in paths], key=len, reverse=True)


def canonical(key: str, places: Sequence[str]) -> str:
    """A name without the prefixes that wrappers at these paths add."""
    for place in places:
        if key.startswith(place + _WRAPPED):
            key = place + key[len(place) + len(_WRAPPED) :]
    return key


def parameter_names(model: Module) -> dict[int, list[str]]:
    """The names of each parameter, by identity; several if it is shared."""
    places = wrappers(model)
    names: dict[int, list[str]] = {}
    for path, p in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(p), []).append(canonical(path, places))
    return names


def parameters(model: Module) -> dict[str, Any]:
    """The parameters by name."""
    places = wrappers(model)
    named = model.named_parameters(remove_duplicate=False)
    return {canonical(path, places): p for path, p in named}


def below(model: Module, submodules: Iterable[Module]) -> list[str]:
    """The prefixes of the names of some modules' parameters."""
    places, wanted = wrappers(model), {id(module) for module in submodules}
    named = model.named_modules(remove_duplicate=False)
    return [f"{canonical(path, places)}." for path, module in named if id(module) in wanted]
