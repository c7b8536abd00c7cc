"""A batch in shards: gradients that are bitwise equal on any number of ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from weft import config, func
from weft.collectives.recorded import run_pending_collectives
from weft.eager.functions.api import Tensor, cat, stack
from weft.eager.tensor.dispatch import record, wrap
from weft.eager.tensor.generator import Branch, Generator, splitmix64
from weft.errors import ArgumentError, ShapeError
from weft.host.nested import NESTED
from weft.nn.module.module import Module
from weft.ops.declaration import REGISTRY
from weft.transport import collective
from weft.transport.group import Group


def check_shards(shards: int, ranks: int) -> int:
    """The number of shards per rank; from now on, programs are compiled before their first run.

    Raises:
        ArgumentError: the number is not a power of two, or is less than the number of ranks.
    """
    if shards < 1 or shards & (shards - 1) or shards % ranks:
        raise ArgumentError.here(
            "DistributedDataParallel: expected shards, a power of two that the number of ranks "
            f"divides, got {shards} for {ranks} ranks"
        )
    config.change("compile", True)  # the interpreter rounds differently
    return shards // ranks


class Streams:
    """Random numbers of the shards of a batch, the same on any number of ranks.

    Each forward pass takes one number from each generator that it uses, on all ranks that of the
    group's first. A shard's random numbers follow from it and from the shard's index in the batch.
    """

    def __init__(self, group: Group) -> None:
        self._group = group
        self._used: list[Generator] = []
        self._starts: dict[Generator, int] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> Streams:
        return Streams(self._group)  # a copy of the module has its own

    def begin(self) -> None:
        """Start a forward pass; ranks agree on the generators that the previous one used."""
        self._starts = {}
        for generator in self._used:
            self._start(generator)

    def of_part(self, place: int) -> Branch:
        """The streams of the shard with this index in the whole batch."""
        return Branch(lambda generator: splitmix64(self._start(generator)) + place)

    def _start(self, generator: Generator) -> int:
        if generator not in self._starts:
            if generator not in self._used:
                self._used.append(generator)
            self._starts[generator] = self._agreed(generator.advance())
        return self._starts[generator]

    def _agreed(self, number: int) -> int:
        if self._group.size == 1:
            return number
        run_pending_collectives()
        agreed = np.array([number], np.uint64)
        collective.broadcast(self._group, agreed, 0, "random numbers of shards")
        return int(agreed[0])


def in_shards(
    module: Module, parameters: Mapping[str, Tensor], count: int, args: Sequence[Any],
    kwargs: Mapping[str, Any], streams: Streams, first: int,
) -> Any:  # fmt: skip
    """Call a module on each of `count` shards of a batch, and concatenate the outputs.

    Args:
        parameters: those that require gradients; the shards' gradients are added in a fixed tree.
        first: the index of this rank's first shard in the whole batch.

    Raises:
        ShapeError: the batch cannot be split into that many equal shards.
    """
    fans = {name: _fan(p, count) for name, p in parameters.items()}
    whole = tuple(args), dict(kwargs)
    parts = [NESTED.mapped(lambda x, i=i: _part(x, i, count), whole) for i in range(count)]
    outputs: list[Any] = []
    streams.begin()
    for i, (positional, named) in enumerate(parts):
        own = {name: fan[i] for name, fan in fans.items()}
        with streams.of_part(first + i):
            outputs.append(func.functional_call(module, own, positional, named))
    return _joined(outputs)


def _fan(p: Tensor, count: int) -> list[Tensor]:
    """The same tensor for each shard; its gradient is the shards' sum in a fixed tree."""
    return [wrap(x) for x in record(REGISTRY["fan_out"], [p.lazy], {"count": count})]


def _part(x: Any, i: int, count: int) -> Any:
    """The i-th of `count` equal shards of a tensor; other values are shared by all shards."""
    if isinstance(x, Tensor):
        rows = x.shape[0] if x.ndim else 0
        if rows % count or not rows:
            raise ShapeError.here(
                f"DistributedDataParallel: expected a batch in {count} equal parts, got an input "
                f"of shape {tuple(x.shape)}"
            )
        return x[i * rows // count : (i + 1) * rows // count]
    return x


def _joined(parts: Sequence[Any]) -> Any:
    first = parts[0]
    if isinstance(first, Tensor):
        return cat(list(parts)) if first.ndim else stack(list(parts)).mean()
    if isinstance(first, tuple | list):
        return type(first)([_joined(column) for column in zip(*parts, strict=True)])
    if isinstance(first, dict):
        return {key: _joined([part[key] for part in parts]) for key in first}
    return first
