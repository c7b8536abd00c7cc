"""State dicts of models and optimizers by names that do not depend on sharding."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from weft.distributed.checkpoint.gathering import from_first, is_first, kept_part, whole
from weft.distributed.checkpoint.names import below, canonical, parameters, wrappers
from weft.distributed.checkpoint.optimizer_state import (
    STATE,
    combined,
    flattened,
    nested,
    own_groups,
)
from weft.errors import ArgumentError
from weft.nn.module.module import Module
from weft.nn.module.state_dict import IncompatibleKeys
from weft.optim.optimizer import Optimizer

__all__ = [
    "StateDictOptions", "get_model_state_dict", "get_optimizer_state_dict", "get_state_dict",
    "set_model_state_dict", "set_optimizer_state_dict", "set_state_dict",
]  # fmt: skip

Optimizers = Optimizer | Iterable[Optimizer] | None


@dataclass
class StateDictOptions:
    """How states are created and loaded.

    Args:
        full_state_dict: whole tensors on all ranks, instead of shards.
        cpu_offload: with `full_state_dict`, only rank 0 gets the state, and the others get `{}`.
            Otherwise it has no effect: tensors are in the host's memory.
        ignore_frozen_params: whether to omit parameters that require no gradient.
        keep_submodule_prefixes: whether names include the path of a submodule, if submodules are
            given.
        strict: whether missing and unexpected keys raise an error.
        broadcast_from_rank0: load rank 0's full state on all ranks; the others may pass `{}`.
        flatten_optimizer_state_dict: a flat dict, `"state.0.weight.exp_avg"`, for the optimizers.
        dsd_fqn_modifiers: must be the default.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def get_model_state_dict(
    model: Module, *, submodules: set[Module] | None = None,
    options: StateDictOptions | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The parameters and buffers of a model, by the names of the model without wrappers.

    Shards are `Slice`s, which `save` writes and `load` fills.

    Args:
        model: any module, also of `fully_shard`, `parallelize_module` or
            `DistributedDataParallel`.
        submodules: deprecated; only their parameters and buffers.
        options: see `StateDictOptions`.

    Raises:
        ArgumentError: options that contradict each other.

    Example:
        >>> import weft as wf
        >>> from weft.distributed.checkpoint.state_dict import get_model_state_dict
        >>> list(get_model_state_dict(wf.nn.Linear(2, 1)))
        ['weight', 'bias']
    """
    chosen = _checked("get_model_state_dict", options)
    places, named = wrappers(model), parameters(model)
    state = {canonical(key, places): value for key, value in model.state_dict().items()}
    state = _below(model, state, submodules, chosen)
    if chosen.ignore_frozen_params:
        frozen = {name for name, p in named.items() if not p.requires_grad}
        state = {key: value for key, value in state.items() if key not in frozen}
    if chosen.full_state_dict:
        state = {key: whole(value, named.get(key)) for key, value in state.items()}
    return _for_rank(state, chosen)


def get_optimizer_state_dict(
    model: Module, optimizers: Optimizers, *, submodules: set[Module] | None = None,
    options: StateDictOptions | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The state of optimizers, by the names of the model's parameters.

    An optimizer without state gets that of its first step, so that `load` can fill it.

    Args:
        model: the model with the parameters.
        optimizers: one or several, whose states are merged.
        submodules: deprecated; has no effect here.
        options: see `StateDictOptions`.

    Raises:
        ArgumentError: no optimizer, one not from `weft.optim`, or one with other parameters.

    Example:
        >>> import weft as wf
        >>> from weft.distributed.checkpoint.state_dict import get_optimizer_state_dict
        >>> model = wf.nn.Linear(2, 1)
        >>> state = get_optimizer_state_dict(model, wf.optim.Adam(model.parameters()))
        >>> list(state["state"]), state["param_groups"][0]["params"]
        (['weight', 'bias'], ['weight', 'bias'])
    """
    chosen = _checked("get_optimizer_state_dict", options)
    _tell_deprecated(submodules)
    listed = _listed("get_optimizer_state_dict", optimizers)
    if not listed:
        raise ArgumentError.here("get_optimizer_state_dict: expected optimizers, got none")
    return _optimizer_state(model, listed, chosen)


def get_state_dict(
    model: Module, optimizers: Optimizers, *, submodules: set[Module] | None = None,
    options: StateDictOptions | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:  # fmt: skip
    """The results of `get_model_state_dict` and `get_optimizer_state_dict`.

    Args:
        model: the model.
        optimizers: one or several; for none, their state is `{}`.
        submodules: deprecated; only their parameters and buffers.
        options: see `StateDictOptions`.

    Raises:
        ArgumentError: see these functions.

    Example:
        >>> import weft as wf
        >>> from weft.distributed.checkpoint.state_dict import get_state_dict
        >>> model = wf.nn.Linear(2, 1)
        >>> states = get_state_dict(model, wf.optim.SGD(model.parameters(), lr=0.1))
        >>> [list(state) for state in states]
        [['weight', 'bias'], ['state', 'param_groups']]
    """
    model_state = get_model_state_dict(model, submodules=submodules, options=options)
    listed = _listed("get_state_dict", optimizers)
    return model_state, _optimizer_state(model, listed, _checked("get_state_dict", options))


def set_model_state_dict(
    model: Module, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> IncompatibleKeys:
    """Load a state that `get_model_state_dict` returned, whole or sharded, into a model.

    Args:
        model: the model.
        model_state_dict: the state; `{}` on other ranks than 0 with `broadcast_from_rank0`.
        options: see `StateDictOptions`.

    Raises:
        StateError: keys are missing or unexpected (if strict), or shapes differ.
        ArgumentError: options that contradict each other, or an empty state.

    Returns:
        The missing and unexpected keys.

    Example:
        >>> import weft as wf
        >>> from weft.distributed.checkpoint.state_dict import set_model_state_dict
        >>> model = wf.nn.Linear(1, 1)
        >>> set_model_state_dict(model, {"weight": wf.ones(1, 1), "bias": wf.zeros(1)})
        <All keys matched successfully>
    """
    chosen = _checked("set_model_state_dict", options)
    state, named = model_state_dict, parameters(model)
    if chosen.broadcast_from_rank0:
        state = from_first(state, lambda key, value: kept_part(value, named.get(key)))
    if not state:
        return _nothing("set_model_state_dict", chosen)
    places = wrappers(model)
    wrapped = {canonical(key, places): key for key in model.state_dict()}
    return model.load_state_dict(
        {wrapped.get(key, key): value for key, value in state.items()}, strict=chosen.strict
    )


def set_optimizer_state_dict(
    model: Module, optimizers: Optimizers, optim_state_dict: dict[str, Any], *,
    options: StateDictOptions | None = None,
) -> None:  # fmt: skip
    """Load a state that `get_optimizer_state_dict` returned, whole or sharded, into optimizers.

    Args:
        model: the model with the parameters.
        optimizers: one or several.
        optim_state_dict: the state; `{}` on other ranks than 0 with `broadcast_from_rank0`.
        options: see `StateDictOptions`.

    Raises:
        ArgumentError: no optimizer, one that is not from `weft.optim`, one with other parameters,
            or an empty state.
        StateError: the state of a parameter is missing (if strict), or the options of a group.

    Example:
        >>> import weft as wf
        >>> from weft.distributed.checkpoint.state_dict import (
        ...     get_optimizer_state_dict, set_optimizer_state_dict)
        >>> model = wf.nn.Linear(1, 1)
        >>> optimizer = wf.optim.Adam(model.parameters(), lr=0.5)
        >>> state = get_optimizer_state_dict(model, optimizer)
        >>> other = wf.optim.Adam(model.parameters())
        >>> set_optimizer_state_dict(model, other, state)
        >>> other.param_groups[0]["lr"]
        0.5
    """
    chosen = _checked("set_optimizer_state_dict", options)
    listed = _listed("set_optimizer_state_dict", optimizers)
    if not listed:
        raise ArgumentError.here("set_optimizer_state_dict: expected optimizers, got none")
    _set_optimizers(model, listed, optim_state_dict, chosen)


def set_state_dict(
    model: Module, optimizers: Optimizers, *, model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any], options: StateDictOptions | None = None,
) -> IncompatibleKeys:  # fmt: skip
    """Load states into optimizers and a model.

    Args:
        model: see `set_model_state_dict`.
        optimizers: see `set_optimizer_state_dict`.
        model_state_dict: see `set_model_state_dict`.
        optim_state_dict: see `set_optimizer_state_dict`.
        options: see `StateDictOptions`.

    Raises:
        ArgumentError, StateError: see these functions.

    Returns:
        The missing and unexpected keys of the model.
    """
    chosen = _checked("set_state_dict", options)
    listed = _listed("set_state_dict", optimizers)
    if listed:
        _set_optimizers(model, listed, optim_state_dict, chosen)
    if not model_state_dict and not chosen.broadcast_from_rank0:
        return IncompatibleKeys([], [])
    return set_model_state_dict(model, model_state_dict, options=chosen)


def _optimizer_state(
    model: Module, optimizers: list[Optimizer], options: StateDictOptions
) -> dict[str, Any]:
    if not optimizers:
        return {}
    state = combined(model, optimizers, options.full_state_dict)
    if options.flatten_optimizer_state_dict:
        state = flattened(state)
    return _for_rank(state, options)


def _set_optimizers(
    model: Module, optimizers: list[Optimizer], state: dict[str, Any], options: StateDictOptions
) -> None:
    named = parameters(model)
    if options.broadcast_from_rank0:
        sent = dict(state)
        entries = sent.pop(STATE, None)
        rest = from_first(sent, lambda key, value: value)
        state = {**rest, STATE: from_first(entries or {}, lambda k, x: kept_part(x, named.get(k)))}
    if not state:
        _nothing("set_optimizer_state_dict", options)
        return
    if STATE not in state:
        state = nested(state, list(named))
    for optimizer in optimizers:
        optimizer.load_state_dict(own_groups(model, optimizer, state, options.strict))


def _listed(name: str, optimizers: Optimizers) -> list[Optimizer]:
    listed: list[Any] = [optimizers] if hasattr(optimizers, "step") else list(optimizers or ())  # type: ignore[arg-type]
    for one in listed:
        if not isinstance(one, Optimizer):
            raise ArgumentError.here(
                f"{name}: expected optimizers of weft.optim, got a {type(one).__name__}"
            )
    return listed


def _checked(name: str, options: StateDictOptions | None) -> StateDictOptions:
    chosen = options or StateDictOptions()
    if chosen.broadcast_from_rank0 and not chosen.full_state_dict:
        raise ArgumentError.here(
            f"{name}: expected full_state_dict=True with broadcast_from_rank0=True"
        )
    if chosen.dsd_fqn_modifiers != StateDictOptions.dsd_fqn_modifiers:
        raise ArgumentError.here(
            f"{name}: expected dsd_fqn_modifiers={StateDictOptions.dsd_fqn_modifiers!r}, got "
            f"{chosen.dsd_fqn_modifiers!r}; names are those of modules"
        )
    return chosen


def _for_rank(state: dict[str, Any], options: StateDictOptions) -> dict[str, Any]:
    """This rank's result: `{}` if only rank 0 gets the state."""
    return state if not (options.full_state_dict and options.cpu_offload) or is_first() else {}


def _nothing(name: str, options: StateDictOptions) -> IncompatibleKeys:
    """The result of loading an empty state, if that is allowed."""
    if options.strict and not (options.full_state_dict and options.cpu_offload):
        raise ArgumentError.here(f"{name}: expected a state, got an empty one")
    return IncompatibleKeys([], [])


def _tell_deprecated(submodules: set[Module] | None) -> None:
    if submodules:
        warnings.warn(
            "submodules is deprecated; leave out keys of the state dict", FutureWarning,
            stacklevel=3,
        )  # fmt: skip


def _below(
    model: Module, state: dict[str, Any], submodules: set[Module] | None, options: StateDictOptions
) -> dict[str, Any]:
    """The entries of submodules, if some are given."""
    _tell_deprecated(submodules)
    if not submodules:
        return state
    entries: dict[str, Any] = {}
    for place in below(model, submodules):
        for key, value in state.items():
            if key.startswith(place):
                entries[key if options.keep_submodule_prefixes else key[len(place) :]] = value
    return entries
