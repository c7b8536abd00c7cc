"""Messages that are made from their bytes."""

from __future__ import annotations

import abc
from typing import Self


class Parsed(abc.ABC):
    """Base class of messages without required arguments."""

    @abc.abstractmethod
    def ParseFromString(self, serialized: bytes) -> int:
        """Replace the contents by those of an encoded message."""

    @classmethod
    def FromString(cls, serialized: bytes) -> Self:
        """Decode a message.

        Raises:
            DataError: it is not one.
        """
        made = cls()
        made.ParseFromString(serialized)
        return made
