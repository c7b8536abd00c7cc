"""State dicts of optimizers by the names of parameters: nested, or flat."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from weft.checkpoint.slices import Slice
from weft.distributed.checkpoint.gathering import whole
from weft.distributed.checkpoint.names import parameter_names
from weft.eager.tensor.interchange.serialization import is_tensor
from weft.errors import ArgumentError, DTypeError, StateError
from weft.nn.module.module import Module
from weft.optim.optimizer import Optimizer

STATE: Final = "state"
GROUPS: Final = "param_groups"
_PARAMS: Final = "params"


def combined(model: Module, optimizers: Iterable[Optimizer], full: bool) -> dict[str, Any]:
    """The merged states of optimizers, by names.

    Args:
        full: whether shards are gathered.

    Raises:
        ArgumentError: an optimizer has a parameter that the model does not have.
    """
    names = parameter_names(model)
    merged: dict[str, Any] = {STATE: {}, GROUPS: []}
    for optimizer in optimizers:
        optimizer.begin()
        params = _parameters(optimizer)
        own = [_names(names, optimizer, i, p)[0] for i, p in enumerate(params)]
        state = optimizer.state_dict()
        for i, entries in sorted(state[STATE].items()):
            taken = {k: whole(v, params[i]) for k, v in entries.items()} if full else entries
            merged[STATE][own[i]] = taken
        merged[GROUPS] += [
            {**group, _PARAMS: [own[i] for i in group[_PARAMS]]} for group in state[GROUPS]
        ]
    return merged


def _parameters(optimizer: Optimizer) -> list[Any]:
    return [p for group in optimizer.param_groups for p in group[_PARAMS]]


def _names(
    names: Mapping[int, list[str]], optimizer: Optimizer, number: int, p: Any
) -> list[str]:  # fmt: skip
    if id(p) not in names:
        raise ArgumentError.here(
            f"{type(optimizer).__name__}: expected parameters of the model, got another as number "
            f"{number}, of shape {tuple(p.shape)}"
        )
    return names[id(p)]


def flattened(state: Mapping[str, Any]) -> dict[str, Any]:
    """A state with one key for each value: `state.NAME.exp_avg`, `param_groups.NAME.lr`.

    Raises:
        DTypeError: a parameter's state contains values other than tensors and numbers.
    """
    flat: dict[str, Any] = {}
    for name, entries in state[STATE].items():
        _flatten(f"{STATE}.{name}", entries, flat)
    for group in state[GROUPS]:
        for name in group[_PARAMS]:
            options = {k: v for k, v in group.items() if k != _PARAMS}
            flat.update({f"{GROUPS}.{name}.{k}": v for k, v in options.items()})
    return flat


def _flatten(path: str, entries: Mapping[Any, Any], flat: dict[str, Any]) -> None:
    for key, value in entries.items():
        where = f"{path}.{key}"
        if isinstance(value, Mapping):
            _flatten(where, value, flat)
        elif is_tensor(value) or isinstance(value, Slice | int | float):
            flat[where] = value
        else:
            raise DTypeError.here(
                f"flatten_optimizer_state_dict: {where!r}: expected a tensor or a number, got a "
                f"{type(value).__name__}"
            )


def nested(flat: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """A flat state as a nested one, with a group for each parameter.

    Args:
        names: of all parameters. A key belongs to the longest name that matches.

    Raises:
        StateError: a key that matches no parameter.
    """
    state: dict[str, Any] = {STATE: {}, GROUPS: []}
    groups: dict[str, dict[str, Any]] = {}
    order = sorted(names, key=len, reverse=True)
    for key, value in flat.items():
        section, _, rest = key.partition(".")
        name = next((n for n in order if rest.startswith(f"{n}.")), None)
        if name is None or section not in (STATE, GROUPS):
            raise StateError.here(
                f"set_optimizer_state_dict: expected keys as 'state.{(*names, 'name')[0]}.step', "
                f"got {key!r}"
            )
        option = rest[len(name) + 1 :]
        if section == GROUPS:
            groups.setdefault(name, {_PARAMS: [name]})[option] = value
        else:
            _put(state[STATE].setdefault(name, {}), option.split("."), value)
    return {**state, GROUPS: list(groups.values())}


def _put(entries: dict[str, Any], keys: Sequence[str], value: Any) -> None:
    for key in keys[:-1]:
        entries = entries.setdefault(key, {})
    entries[keys[-1]] = value


def own_groups(
    model: Module, optimizer: Optimizer, state: Mapping[str, Any], strict: bool
) -> dict[str, Any]:
    """One optimizer's part of the state of several, in the order of its parameters.

    Args:
        strict: whether the state of every parameter that requires a gradient must exist.

    Raises:
        ArgumentError: the optimizer has a parameter that the model does not have.
        StateError: the state of a parameter is missing, or the options of a group.
    """
    if state[STATE] and all([isinstance(key, int) for key in state[STATE]]):
        return dict(state)
    names = parameter_names(model)
    places = {name: i for i, group in enumerate(state[GROUPS]) for name in group[_PARAMS]}
    taken: dict[str, Any] = {STATE: {}, GROUPS: []}
    number = 0
    for group in optimizer.param_groups:
        own: list[str] = []
        for p in group[_PARAMS]:
            known = _names(names, optimizer, number, p)
            own.append(next((name for name in known if name in places), known[0]))
            number += 1
            _take(taken[STATE], state[STATE], own[-1], strict and p.requires_grad)
        taken[GROUPS].append({**_options(state[GROUPS], places, own), _PARAMS: own})
    return taken


def _take(into: dict[str, Any], state: Mapping[str, Any], name: str, needed: bool) -> None:
    if name in state:
        into[name] = state[name]
    elif needed and state:
        raise StateError.here(
            f"set_optimizer_state_dict: expected the state of {name!r}, got none; give "
            f"StateDictOptions(strict=False) to begin it anew"
        )


def _options(
    groups: Sequence[Mapping[str, Any]], places: Mapping[str, int], own: Sequence[str]
) -> dict[str, Any]:
    """The options of a group, from the groups of the state that have its parameters."""
    numbers = list(dict.fromkeys([places[name] for name in own if name in places]))
    if not own:
        numbers = [i for i, group in enumerate(groups) if not group[_PARAMS]]
    if not numbers:
        raise StateError.here(
            f"set_optimizer_state_dict: expected a group with {', '.join(own) or 'no parameters'}, "
            f"got none in param_groups"
        )
    options: dict[str, Any] = {}
    for number in numbers:
        for key, value in groups[number].items():
            if key != _PARAMS and options.setdefault(key, value) != value:
                raise StateError.here(
                    f"set_optimizer_state_dict: expected one value of {key!r} for the group with "
                    f"{', '.join(own)}, got {options[key]} and {value}"
                )
    return options
