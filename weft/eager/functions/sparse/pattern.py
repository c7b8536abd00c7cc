"""Where a sparse tensor has entries, and how it is read as a dense one."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar, Final, NoReturn

import numpy as np

from weft.eager.functions.creation.constructor import tensor
from weft.eager.functions.shape.joining import stack
from weft.eager.functions.sort.counting import unique
from weft.eager.functions.sparse.csr import csr_order, csr_rows
from weft.eager.record.pending.lazy import Lazy
from weft.eager.tensor.argument import dims_of
from weft.eager.tensor.dispatch import recorded
from weft.errors import AliasError
from weft.ops.declaration.fact import Autocast
from weft.ops.sparse import coordinate

dense: Final = recorded(coordinate.dense, autocast=Autocast.WIDEST)
places: Final = recorded(coordinate.places, differentiable=False)


class Pattern:
    """Where a sparse tensor has entries; each form is computed when it is first asked for.

    Args:
        shape: of the sparse axes.
        indices: (axes, entries), int64.
        rows: row pointers and columns of a CSR matrix, instead.
        is_coalesced: whether the entries are in order, each place once.
    """

    def __init__(
        self, shape: tuple[int, ...], indices: Any = None, rows: tuple[Any, Any] | None = None,
        is_coalesced: bool = False,
    ) -> None:  # fmt: skip
        self.shape, self.is_coalesced = shape, is_coalesced
        self._given, self._rows = indices, rows

    @cached_property
    def indices(self) -> Any:
        """The coordinates."""
        if self._rows is None:
            return self._given
        indptr, columns = self._rows
        return stack([csr_rows(indptr, dims_of(columns)[0]).long(), columns.long()])

    @cached_property
    def csr(self) -> tuple[Any, Any, Any]:
        """Row pointers, columns, and the order of the entries; `None` for theirs."""
        if self._rows is not None:
            return (*self._rows, None)
        indptr, order = csr_order(self.indices[0], self.shape[0])
        return indptr, self.indices[1][order], order

    @cached_property
    def transposed(self) -> Pattern:
        """The pattern of the transposed matrix."""
        return Pattern((self.shape[1], self.shape[0]), self.indices.flip(0))

    @cached_property
    def coalesced(self) -> tuple[Pattern, Any]:
        """The pattern with each place once, and for each entry which one it is at."""
        found, which = unique(places(self.indices, shape=self.shape), return_inverse=True)
        axes = np.unravel_index(found.numpy(), self.shape)
        indices = tensor(np.stack(axes).astype(np.int64))
        return Pattern(self.shape, indices, is_coalesced=True), which


class Scattered:
    """The lens through which a sparse tensor's values are seen as a dense tensor."""

    detached: ClassVar[bool] = False

    def __init__(self, pattern: Pattern, shape: tuple[int, ...]) -> None:
        self.pattern, self.shape = pattern, shape

    def lay(self, base: Any) -> NoReturn:
        """Refused: zeros are stored nowhere.

        Raises:
            AliasError: always.
        """
        raise AliasError.here("a sparse tensor: expected a dense one: call to_dense() first")

    def take(self, base: Lazy) -> Lazy:
        """The dense value."""
        return dense.record((self.pattern.indices, base), {"shape": self.shape})[0]

    def put(self, base: Lazy, part: Lazy) -> NoReturn:
        """Refused: zeros are stored nowhere.

        Raises:
            AliasError: always.
        """
        raise AliasError.here(
            "in-place change of a sparse tensor: change its values(), or call to_dense() first"
        )
