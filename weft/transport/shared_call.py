"""All-reduces that native code makes, and how Python waits in them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.transport.base import Zeros
from weft.transport.channel import Channel
from weft.transport.group import Group
from weft.transport.native import SHOWN, CallTable


class SharedCall:
    """An all-reduce of arrays of one type, for native code; see `weft.codegen.all_reduce`.

    Args:
        name: of the reduction.
        what: the call, as errors name it.
        sizes: the number of elements of each array; together they fit a slot.
        neutral: see `Group.call`.
    """

    def __init__(
        self, group: Group, channel: Channel, name: str, what: str, dtype: np.dtype[Any],
        sizes: Sequence[int], neutral: Zeros | None,
    ) -> None:  # fmt: skip
        self.name, self.dtype, self.members = name, dtype, group.size
        self._group, self._channel, self._what, self._neutral = group, channel, what, neutral
        self._sizes = np.array(sizes, np.int64)
        sent = int(self._sizes.sum()) * dtype.itemsize * (group.size - 1)
        self.table = CallTable(
            channel=channel.place(), tag=group.tag_of(what), arrays=len(sizes),
            sizes=self._sizes.ctypes.data, sent=sent,
        )  # fmt: skip
        self.place = ctypes.addressof(self.table)

    @property
    def is_shown(self) -> bool:
        """Whether it must be waited for: native code has raised its flag, but others have not."""
        return self.table.stage == SHOWN

    def wait(self) -> None:
        """Wait until all members have raised their flags; native code then reduces.

        Raises:
            DistributedError: a member failed, ended or did not answer.
        """
        self._group.wait_late(self._what, self._channel, self._neutral)
