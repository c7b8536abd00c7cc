"""What a checkpoint has under a name: a variable, or the parts of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.errors import DTypeError
from weft.formats.tensorflow.bundle import Pieces
from weft.ir.shape import Shape
from weft.tf1.framework.graph import fail
from weft.tf1.variable.partitioned import PartitionedVariable
from weft.tf1.variable.slice_info import SaveSliceInfo
from weft.tf1.variable.variable import Variable

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Item:
    """A tensor of a checkpoint.

    Args:
        parts: a variable, or the parts of a partitioned one.
        places: where the parts lie in it, if it is in parts.
    """

    parts: tuple[Variable, ...]
    places: tuple[SaveSliceInfo, ...] = ()

    @property
    def shape(self) -> Shape:
        """The shape of the whole."""
        return tuple(self.places[0].full_shape) if self.places else self.parts[0].shape.as_dims()

    def joined(self, values: Sequence[Array]) -> Array | Pieces:
        """What is saved, of the values of the parts."""
        if not self.places:
            return values[0]
        pieces = zip([place.piece for place in self.places], values, strict=True)
        return Pieces(tuple(self.places[0].full_shape), tuple(pieces))

    def divided(self, array: Array) -> dict[str, Array]:
        """What each part is restored to, by its key, of the whole."""
        if not self.places:
            return {self.parts[0].key: array}
        pairs = zip(self.parts, self.places, strict=True)
        return {part.key: np.ascontiguousarray(array[place.window]) for part, place in pairs}


def items_of(chosen: Mapping[str, Any] | Sequence[Any]) -> dict[str, Item]:
    """The tensors of a checkpoint by name, of what a `Saver` is given."""
    if isinstance(chosen, Mapping):
        return {name: _item(given) for name, given in chosen.items()}
    found: dict[str, list[Variable]] = {}
    for given in chosen:
        for variable in _variables(given):
            place = variable.slice_info
            name = variable.op.name if place is None else place.full_name
            found.setdefault(name, []).append(variable)
    return {name: _item(parts if _in_parts(parts) else parts[0]) for name, parts in found.items()}


def _in_parts(variables: Sequence[Variable]) -> bool:
    return variables[0].slice_info is not None


def _item(given: Any) -> Item:
    variables = _variables(given)
    if isinstance(given, Variable):
        return Item((given,))
    places = [variable.slice_info for variable in variables]
    if None in places or not places:
        text = f"Saver: expected a variable or the parts of one, got {given!r}"
        raise fail(DTypeError, text)
    return Item(tuple(variables), tuple([place for place in places if place is not None]))


def _variables(given: Any) -> list[Variable]:
    several = isinstance(given, PartitionedVariable | list | tuple)
    found: list[Any] = list(given) if several else [given]
    for variable in found:
        if not isinstance(variable, Variable):
            raise fail(DTypeError, f"Saver: expected variables, got {variable!r}")
    return found


def shards_of(items: Mapping[str, Item]) -> tuple[Callable[[str, int], int], int]:
    """The data file of each part, one for each device of variables; tables are in the first."""
    devices = sorted({part.device for item in items.values() for part in item.parts})

    def shard(name: str, piece: int) -> int:
        item = items.get(name)
        return 0 if item is None else devices.index(item.parts[piece].device)

    return shard, max(len(devices), 1)
