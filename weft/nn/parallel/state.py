"""State dicts of modules with sharded parameters: saved as slices, loaded from whole tensors."""

from __future__ import annotations

from typing import Any

from weft.checkpoint.slices import own_part, sliced
from weft.nn.module.module import Module
from weft.nn.parameter import Parameter
from weft.transport.division import division_of


def register_state_hooks(module: Module) -> None:
    """Let a module's state dict contain its sharded parameters as slices.

    Whole tensors and slices can be loaded. With `keep_vars` the state dict has the parameters
    themselves.
    """
    module.register_state_dict_post_hook(_save)
    module.register_load_state_dict_pre_hook(_load)


def _parts(module: Module) -> list[tuple[str, Parameter]]:
    named = module.named_parameters(recurse=False)
    return [(name, p) for name, p in named if division_of(p) is not None]


def _save(module: Module, state: Any, prefix: str, _: Any) -> None:
    for name, p in _parts(module):
        value = state.get(prefix + name)
        if value is not None and value is not p:
            state[prefix + name] = sliced(value, p)


def _load(module: Module, state: Any, prefix: str, *_: Any) -> None:
    for name, p in _parts(module):
        if prefix + name in state:
            state[prefix + name] = own_part(state[prefix + name], p)
