"""Compact exchange of large gradients that are row-sparse or of low rank."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from weft import config
from weft.codegen.target import current
from weft.collectives import factors
from weft.collectives.recorded import run_pending_collectives
from weft.eager.record.pending.lazy import Lazy
from weft.eager.record.pending.state import trace
from weft.eager.tensor.lookup import UsesByPass, is_large, looked_up, multiplied, pays
from weft.ir.shape import known
from weft.transport import collective
from weft.transport.group import Group

_NO_ROWS = np.iinfo(np.int64).max
"""The number of rows of a dense gradient: too many to be exchanged as rows."""


class Exchanged(NamedTuple):
    """Which gradients of a backward pass are not exchanged as dense arrays.

    Attributes:
        tables: the maximum number of rows over ranks, by id of each table exchanged as rows.
        products: ids of parameters whose gradients are exchanged as factors.
    """

    tables: dict[int, int]
    products: set[int]


class Large:
    """Large parameters of a model, and how their gradients are exchanged.

    The ranks agree on the candidates in the first backward pass; other models exchange nothing.

    Args:
        products: whether gradients may be exchanged as factors.
    """

    def __init__(self, params: Sequence[Any], group: Group, products: bool = True) -> None:
        self._params = [p for p in params if p.ndim and is_large(p)]
        self._group = group
        self._agreed = False
        self._products = products and group.size > 1

    @property
    def may_exchange(self) -> bool:
        """Whether ranks exchange numbers of rows after each backward pass."""
        return self._agreed and bool(self._params)

    def exchanged(self) -> Exchanged:
        """The gradients to exchange compactly; all ranks call it after a backward pass."""
        if trace.now.depth:
            return Exchanged({}, set())
        uses: UsesByPass = {}
        rows = [
            (0, 0) if p.grad is None else self._rows(p.lazy, p.grad.lazy, uses)
            for p in self._params
        ]
        if not self._agreed:
            rows = self._agree(rows)
        if not self._params:
            return Exchanged({}, set())
        # Factors with equally many rows on all ranks: each rank must compute the same bits.
        own = [(looked or _NO_ROWS, n, -n) for looked, n in rows]
        size, most = self._group.size, list(zip(self._params, self._most(own), strict=True))
        tables = {id(p): looked for p, (looked, _, _) in most if pays(p, looked * size)}
        products = {
            id(p) for p, (_, n, m) in most
            if self._products and n == -m and factors.pays(known(p.lazy.type.shape), n * size)
        }  # fmt: skip
        if products and not config.get("compile"):
            config.change("compile", True)  # the interpreter rounds otherwise
        return Exchanged(tables, products - tables.keys())

    def _agree(self, rows: Sequence[Sequence[int]]) -> list[Sequence[int]]:
        """Keep parameters whose gradients are row-sparse or products on any rank."""
        if not rows:
            return []
        self._agreed = True
        processor = zlib.crc32(repr(current()).encode())
        *most, (highest, lowest) = self._most([*rows, (processor, -processor)])
        self._products &= highest == -lowest  # different processors may round differently
        chosen = [any(numbers) for numbers in most]
        self._params = [p for p, c in zip(self._params, chosen, strict=True) if c]
        return [numbers for numbers, c in zip(rows, chosen, strict=True) if c]

    def _most(self, numbers: Sequence[Sequence[int]]) -> list[list[int]]:
        """The maximum over ranks, for each number."""
        run_pending_collectives()
        counts = np.array(numbers, np.int64)
        what = f"rows of {len(counts)} gradients"
        collective.all_reduce(self._group, counts, counts, "max", what)
        return counts.tolist()

    def _rows(self, p: Lazy, g: Lazy, uses: UsesByPass) -> tuple[int, int]:
        return looked_up(p, g, uses), multiplied(p, g, uses) if self._products else 0
