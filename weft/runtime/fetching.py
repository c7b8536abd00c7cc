"""Results of a program: each fetch is a function that copies its value after a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft.ir.node import TensorType
from weft.ir.shape import is_stack, known
from weft.passes.blueprint import Constant, Feed, InArena, Kept, Place, Stack, Variable
from weft.runtime.memory.views import ProgramMemory


def fetch(memory: ProgramMemory, place: Place, kind: TensorType) -> Callable[[], Any]:
    """A function that returns a fresh copy of a result; a NumPy scalar for rank 0."""
    if is_stack(kind.shape):
        read = memory.reader(place, kind)
        return lambda: read().copy()
    shape, dtype = known(kind.shape), kind.dtype.numpy
    if isinstance(place, InArena):
        array = memory.arena.view(place.offset, dtype, shape)
        return array.copy if shape else lambda: array[()]
    match memory.externals[place.index]:
        case Constant(array):
            return array.reshape(shape).copy if shape else lambda: array.reshape(())[()]
        case Feed(index):
            return lambda: np.array(memory.feeds[index]).reshape(shape)[()]
        case Variable(key):
            return lambda: memory.variable(key).reshape(shape)[()]
        case Kept() | Stack():
            raise AssertionError("memory owned by the program cannot be returned")
