"""Names of devices, as TensorFlow writes them: `/job:ps/replica:0/task:1/device:CPU:0`.

>>> DeviceName.parse("/job:ps/cpu:1")
DeviceName(job='ps', replica=None, task=None, kind='CPU', index=1)
>>> str(DeviceName.parse("/job:ps").merged(DeviceName.parse("/task:1/device:CPU:0")))
'/job:ps/task:1/device:CPU:0'
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, fields, replace
from typing import Final

from weft.errors import ArgumentError

KINDS: Final = frozenset({"CPU", "GPU", "TPU"})
"""Kinds that may be written without `device:`, and in small letters."""
_PARTS: Final = re.compile(
    r"job:(?P<job>[^:/]+)|replica:(?P<replica>\d+)|task:(?P<task>\d+)"
    r"|device:(?P<kind>\w+):(?P<index>\d+|\*)|(?P<bare>[A-Za-z]+)(?::(?P<at>\d+|\*))?"
)
_NUMBERS: Final = ("replica", "task", "index")


@dataclass(frozen=True)
class DeviceName:
    """A device, or a constraint on devices: parts that are `None` are not told.

    Attributes:
        job: the name of a job of the cluster, such as `ps`.
        replica: of the job; always 0.
        task: the number of a process of the job.
        kind: such as `CPU`.
        index: among the devices of this kind in the process.
    """

    job: str | None = None
    replica: int | None = None
    task: int | None = None
    kind: str | None = None
    index: int | None = None

    @classmethod
    def parse(cls, text: str) -> DeviceName:
        """The name that a text tells; parts may be missing, and stand in any order.

        Raises:
            ArgumentError: a part is none of a device's, or there are two devices.
        """
        return _parsed(text)

    def merged(self, inner: DeviceName) -> DeviceName:
        """This name with the parts that `inner` tells put in place of its own."""
        told = {f.name: getattr(inner, f.name) for f in fields(inner)}
        return replace(self, **{name: value for name, value in told.items() if value is not None})

    def agrees(self, other: DeviceName) -> bool:
        """Whether no part is told differently by both."""
        return all(
            None in (a, b) or a == b for a, b in zip(self._values(), other._values(), strict=True)
        )

    @property
    def is_full(self) -> bool:
        """Whether it names one device of a cluster; a replica that is not told is 0."""
        return None not in (self.job, self.task, self.kind, self.index)

    @property
    def of_task(self) -> DeviceName:
        """The process, without the device in it."""
        return replace(self, kind=None, index=None)

    @property
    def is_empty(self) -> bool:
        """Whether no part is told."""
        return self == EVERY

    def _values(self) -> tuple[str | int | None, ...]:
        return (self.job, self.replica, self.task, self.kind, self.index)

    def __str__(self) -> str:
        parts = [
            f"/{name}:{value}"
            for name, value in (("job", self.job), ("replica", self.replica), ("task", self.task))
            if value is not None
        ]
        if self.kind is not None:
            index = "*" if self.index is None else self.index
            parts.append(f"/device:{self.kind}:{index}")
        return "".join(parts)


EVERY: Final = DeviceName()
"""A name that tells nothing."""


@functools.lru_cache(1024)
def _parsed(text: str) -> DeviceName:
    found: dict[str, str] = {}
    for part in filter(None, text.split("/")):
        told = _part(part)
        if told is None:
            raise ArgumentError(
                f"device: expected a name such as /job:ps/task:0/device:CPU:0, got {text!r}: "
                f"unknown attribute {part!r}"
            )
        if "kind" in told and "kind" in found:
            raise ArgumentError(
                f"device: expected one device, got {text!r}: Cannot specify multiple device types"
            )
        found.update(told)
    parts = {name: int(x) if name in _NUMBERS else x for name, x in found.items() if x != "*"}
    return DeviceName(**parts)  # pyright: ignore[reportArgumentType]


def _part(text: str) -> dict[str, str] | None:
    """The fields that a part of a name tells; `None` if it is not understood."""
    match = _PARTS.fullmatch(text)
    if match is None:
        return None
    told = {name: value for name, value in match.groupdict().items() if value is not None}
    if "bare" in told:
        if told["bare"].upper() not in KINDS:
            return None
        told = {"kind": told["bare"].upper(), "index": told.get("at", "*")}
    if told.get("kind") in ("cpu", "gpu"):
        told["kind"] = told["kind"].upper()
    return told
