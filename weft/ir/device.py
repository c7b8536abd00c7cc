"""Names of devices, as TensorFlow writes them: `/job:ps/replica:0/task:1/device:CPU:0`.

>>> DeviceName.parse("/job:ps/cpu:1")
DeviceName(job='ps', replica=None, task=None, kind='CPU', index=1)
>>> str(DeviceName.parse("/job:ps").merged(DeviceName.parse("/task:1/device:CPU:0")))
'/job:ps/task:1/device:CPU:0'
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from typing import Final

from weft.errors import ArgumentError

_PARTS: Final = re.compile(
    r"job:(?P<job>[A-Za-z][A-Za-z0-9_]*)|replica:(?P<replica>\d+)|task:(?P<task>\d+)"
    r"|(?:device:)?(?P<kind>[A-Za-z]\w*)(?::(?P<index>\d+|\*))?"
)
_NUMBERS: Final = ("replica", "task", "index")


@dataclass(frozen=True)
class DeviceName:
    """A device, or a constraint on devices: parts that are `None` are not told.

    Attributes:
        job: the name of a job of the cluster, such as `ps`.
        replica: of the job; always 0.
        task: the number of a process of the job.
        kind: `CPU`, in capitals.
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
            ArgumentError: a part is none of a device's.
        """
        found: dict[str, str | int | None] = {}
        for part in text.strip("/").split("/") if text.strip("/") else ():
            match = _PARTS.fullmatch(part)
            if match is None:
                raise ArgumentError(
                    f"device: expected a name such as /job:ps/task:0/device:CPU:0, got {text!r}, "
                    f"of which {part!r} is not understood"
                )
            for name, value in match.groupdict().items():
                if value is not None and value != "*":
                    found[name] = int(value) if name in _NUMBERS else value
        kind = found.get("kind")
        if isinstance(kind, str):
            found["kind"] = kind.upper()
        return cls(**found)  # pyright: ignore[reportArgumentType]

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
