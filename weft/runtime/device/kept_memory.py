"""Memory that programs keep from step to step for what their stages give each other."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any, Final

from weft.ir.node import TensorType
from weft.ir.shape import is_stack
from weft.passes.partition import Partition
from weft.runtime.device.base import Buffer, Device, HostArray


class KeptMemory:
    """Memory for what stages give to each other, shared by programs that take turns.

    It is free once no program has it any more.

    Args:
        devices: by full name.
    """

    def __init__(self, devices: Mapping[str, Device]) -> None:
        self._devices: Final = devices
        self._arrays: weakref.WeakValueDictionary[Any, HostArray] = weakref.WeakValueDictionary()

    def of(self, partition: Partition, fetched: Collection[int]) -> dict[int, Buffer]:
        """Memory for the values of a partition that its caller does not get, by number."""
        count: Counter[tuple[str, TensorType]] = Counter()
        found: dict[int, Buffer] = {}
        for stage in partition.stages:
            for number in stage.outputs:
                kind = partition.types[number]
                if number not in fetched and not is_stack(kind.shape):
                    found[number] = self._one(stage.device, kind, count[stage.device, kind])
                    count[stage.device, kind] += 1
        return found

    def _one(self, name: str, kind: TensorType, number: int) -> Buffer:
        device = self._devices[name]
        if not device.in_host_memory:
            return device.allocate(kind)
        key = name, kind, number
        array = self._arrays.get(key)
        if array is None:
            array = self._arrays[key] = device.allocate(kind)
        return array
