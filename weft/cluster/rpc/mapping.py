"""Memory that other processes of the host have lent to this one."""

from __future__ import annotations

import fcntl
import os
from typing import Final

import numpy as np

from weft.cluster.rpc.message import Array
from weft.cluster.rpc.pages import Mapping
from weft.cluster.rpc.segment import FIRST_LOAN, LOANS, PAGE, RETIRED
from weft.errors import DataError

SEALS: Final = fcntl.F_SEAL_SHRINK
"""Without it the lender could make a segment shorter, and reading it would end this process."""


class _Mapped:
    """A segment of another process, mapped here."""

    def __init__(self, file: int, size: int) -> None:
        try:
            sealed = fcntl.fcntl(file, fcntl.F_GET_SEALS) & SEALS == SEALS
            if not sealed or os.fstat(file).st_size != size:
                raise DataError("message: a memory segment of another size, or without seals")
            self._mapping = Mapping(file, size)
        except OSError as error:
            raise DataError(f"message: cannot map a memory segment: {error.strerror}") from None
        self.size = size
        self.words = self._mapping.words(PAGE)
        self.address = self._mapping.address

    @property
    def retired(self) -> bool:
        """Whether its owner does not use it any more."""
        return self.words[RETIRED] != 0


class Loan:
    """What keeps borrowed memory from being used again: the base of all arrays in it."""

    __slots__ = ("__array_interface__", "__weakref__", "_index", "_mapped")

    def __init__(self, mapped: _Mapped, index: int) -> None:
        self._mapped, self._index = mapped, index
        self.__array_interface__ = {
            "shape": (mapped.size - PAGE,), "typestr": "|u1", "version": 3,
            "data": (mapped.address + PAGE, True),
        }  # fmt: skip

    def __del__(self) -> None:
        self._mapped.words[self._index] = 0


class Mappings:
    """The segments of one other process that are mapped here."""

    def __init__(self) -> None:
        self._mapped: dict[int, _Mapped] = {}

    def borrow(self, number: int, size: int, index: int, file: int) -> Array:
        """The data of a segment, as bytes; the loan ends with the last view of them.

        Args:
            number: of the segment.
            size: its bytes.
            index: of the loan.
            file: a descriptor, which the caller closes.

        Raises:
            DataError: a segment that is not as stated.
        """
        mapped = self._mapped.get(number)
        if mapped is None:
            for each, old in list(self._mapped.items()):
                if old.retired:
                    self._mapped.pop(each, None)
            mapped = self._mapped.setdefault(number, _Mapped(file, size))
        if size != mapped.size or not FIRST_LOAN <= index < FIRST_LOAN + LOANS:
            raise DataError("message: a memory segment of another size, or a loan that it has not")
        return np.asarray(Loan(mapped, index))

    def close(self) -> None:
        """Unmap what has no views."""
        self._mapped.clear()
