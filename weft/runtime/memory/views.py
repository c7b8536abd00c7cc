"""The memory of a program as NumPy arrays: for Python called in a step, and for its results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.ir.node import TensorType
from weft.ir.shape import is_stack, known
from weft.passes.blueprint import External, InArena, Place, Source
from weft.runtime.memory.address import array_at
from weft.runtime.memory.arena import Arena
from weft.runtime.memory.state import State
from weft.runtime.memory.tape import Tapes

Array = np.ndarray[Any, Any]


class ProgramMemory:
    """The values of a program: in its arena, on its tapes, or outside.

    Attributes:
        externals: the kind of each external.
        addresses: the address of each external; set once the program is made.
        feeds: the arrays that the current run was given.
        state: the variables that the program is bound to.
    """

    def __init__(self, arena: Arena, externals: Sequence[Source], tapes: Tapes) -> None:
        self.arena = arena
        self.externals = externals
        self.tapes = tapes
        self.addresses: Sequence[int] = ()
        self.feeds: Sequence[Array] = ()
        self.state: State | None = None

    def variable(self, key: str) -> Array:
        """A copy of a variable's value in the bound state."""
        assert self.state is not None
        return self.state[key]

    def reader(self, place: Place, kind: TensorType) -> Callable[[], Array]:
        """A function that returns the memory of a place as an array, without a copy."""
        if is_stack(kind.shape) and isinstance(place, External):
            row = known((kind.shape or ())[1:])
            return lambda: self.tapes.array(place.index, kind.dtype.numpy, row)
        shape, dtype = known(kind.shape), kind.dtype.numpy
        if isinstance(place, InArena):
            array = self.arena.view(place.offset, dtype, shape)
            return lambda: array
        index = place.index
        return lambda: array_at(self.addresses[index], shape, dtype)

    def writer(self, place: Place, kind: TensorType) -> Callable[[Array], None]:
        """A function that writes an array to a place; a stack takes the array's number of rows."""
        if is_stack(kind.shape) and isinstance(place, External):
            index, dtype = place.index, kind.dtype.numpy

            def write_stack(array: Array) -> None:
                self.tapes.resize(index, len(array))
                self.tapes.array(index, dtype, array.shape[1:])[...] = array

            return write_stack
        read = self.reader(place, kind)

        def write(array: Array) -> None:
            read()[...] = array

        return write
