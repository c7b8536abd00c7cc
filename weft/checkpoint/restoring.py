"""Loads a checkpoint into objects, after checking that it matches them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from weft.checkpoint.slices import PerRank, Slice, piece_of
from weft.eager.record.pending.mode import no_grad
from weft.eager.tensor.interchange.serialization import array_of, is_tensor
from weft.eager.tensor.tensor import Tensor
from weft.errors import CheckpointError
from weft.formats.checkpoint_folder.state import ABSENT
from weft.ir.shape import show

MOST_NAMED: Final = 20  # errors of each kind that a message lists


class Restored(NamedTuple):
    """A checkpoint that was read.

    Attributes:
        state: the saved state, as nested dicts and lists of tensors.
        path: the folder of this step.
    """

    step: int
    state: dict[str, Any]
    metrics: dict[str, float]
    path: Path


class Fault(NamedTuple):
    """A place where a checkpoint does not match, and in what: a line of the message."""

    kind: str
    place: str


MISSING: Final = "missing in the checkpoint"
_UNEXPECTED: Final = "not expected"
MISMATCH: Final = "of another kind, shape or type"


def put_back(into: Mapping[str, Any], found: Restored) -> None:
    """Loads the saved state into objects, tensors and arrays of the same names.

    Raises:
        CheckpointError: the checkpoint does not match; nothing has been changed then, unless an
            object's own `load_state_dict` raised: objects before it in `into` are loaded.
    """
    faults = list(_faults(into, found.state, ""))
    if faults:
        raise CheckpointError(mismatches(found.path, faults))
    for name, target in into.items():
        try:
            load_into(target, found.state[name])
        except Exception as error:
            raise CheckpointError(f"restore: {found.path}: {name!r}: {error}") from error


def has_state(x: Any) -> bool:
    """Whether an object has `state_dict` and `load_state_dict`."""
    return hasattr(x, "state_dict") and hasattr(x, "load_state_dict")


# -- checking


def _faults(into: Any, saved: Any, place: str) -> Iterator[Fault]:
    if saved is ABSENT:
        return
    if isinstance(into, PerRank):
        yield from _faults(into.value, saved, place)
    elif isinstance(into, Slice):
        whole = f"{array_of(into.tensor).dtype}{show(tuple(into.shape))}"
        if kind_of(saved) != whole:
            yield Fault(MISMATCH, f"{place}: expected {whole}, got {kind_of(saved)}")
    elif has_state(into):
        yield from _faults_of_object(into, saved, place)
    elif isinstance(into, Mapping):
        yield from _faults_of_dict(into, saved, place)
    elif isinstance(into, list | tuple):
        yield from _faults_of_list(into, saved, place)
    elif isinstance(into, Tensor | np.ndarray) and kind_of(into) != kind_of(saved):
        yield Fault(MISMATCH, f"{place}: expected {kind_of(into)}, got {kind_of(saved)}")


def _faults_of_list(into: Sequence[Any], saved: Any, place: str) -> Iterator[Fault]:
    if not isinstance(saved, list | tuple) or len(saved) != len(into):
        yield Fault(MISMATCH, f"{place}: expected {len(into)} entries, got {kind_of(saved)}")
        return
    for number, (one, other) in enumerate(zip(into, saved, strict=True)):
        yield from _faults(one, other, f"{place}.{number}")


def _faults_of_dict(into: Mapping[Any, Any], saved: Any, place: str) -> Iterator[Fault]:
    if not isinstance(saved, Mapping):
        yield Fault(MISMATCH, f"{place}: expected a dict, got {kind_of(saved)}")
        return
    for key, one in into.items():
        where = f"{place}.{key}" if place else str(key)
        if key in saved:
            yield from _faults(one, saved[key], where)
        else:
            yield Fault(MISSING, where)


def _faults_of_object(into: Any, saved: Any, place: str) -> Iterator[Fault]:
    """Mismatches of a model, whose tensors all have names; other objects check by themselves."""
    own = into.state_dict()
    if not isinstance(own, Mapping) or not own or not all(map(is_tensor, own.values())):
        return
    yield from _faults_of_dict(own, saved, place)
    if isinstance(saved, Mapping):
        for key in saved:
            if key not in own:
                yield Fault(_UNEXPECTED, f"{place}.{key}")


def kind_of(x: Any) -> str:
    """What something is, for messages: the type and shape of an array, the class of the rest."""
    if is_tensor(x):
        array = array_of(x)
        return f"{array.dtype}{show(array.shape)}"
    return f"{len(x)} entries" if isinstance(x, Sequence | Mapping) else type(x).__name__


def mismatches(path: Path, faults: Sequence[Fault], name: str = "restore") -> str:
    """The message that lists faults by their kind.

    Args:
        name: the function that found them.
    """
    lines = [f"{name}: {path} does not match the state to restore:"]
    for kind in (MISSING, _UNEXPECTED, MISMATCH):
        places = [fault.place for fault in faults if fault.kind == kind]
        if places:
            more = len(places) - MOST_NAMED
            rest = f", and {more} more" if more > 0 else ""
            lines.append(f"  {kind}: {', '.join(places[:MOST_NAMED])}{rest}")
    return "\n".join(lines)


# -- loading


def load_into(into: Any, saved: Any) -> None:
    """Loads saved values in place, after `_faults` has found none."""
    if isinstance(into, PerRank):
        _load_own(into, saved)
    elif isinstance(into, Slice):
        load_into(into.tensor, piece_of(saved, into))
    elif has_state(into):
        into.load_state_dict(saved)
    elif isinstance(into, Mapping):
        for key, one in into.items():
            load_into(one, saved[key])
    elif isinstance(into, list | tuple):
        for one, other in zip(into, saved, strict=True):
            load_into(one, other)
    elif isinstance(into, Tensor):
        with no_grad():
            into.copy_(saved)
    elif isinstance(into, np.ndarray):
        np.copyto(into, array_of(saved))


def _load_own(into: PerRank, saved: Any) -> None:
    if saved is ABSENT:
        warnings.warn(
            f"restore: saved by another number of ranks: {into.value!r:.80} is not changed",
            stacklevel=5,
        )
    else:
        load_into(into.value, saved)
