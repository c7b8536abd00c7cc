"""`tf.DeviceSpec`: the parts of a device's name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

from weft.errors import ArgumentError, at_user_line
from weft.ir.device import DeviceName

__all__ = ["DeviceSpec"]


class DeviceSpec:
    """A device, or a constraint on devices: parts that are `None` are not told.

    Args:
        job: the name of a job, such as `ps`.
        replica: the number of a replica of the job.
        task: the number of a process of the job.
        device_type: `CPU` or `GPU`.
        device_index: the number of a device of this type in the process.

    >>> import weft.tf1 as tf
    >>> tf.DeviceSpec(job="ps", device_type="CPU", device_index=0).to_string()
    '/job:ps/device:CPU:0'
    """

    def __init__(
        self, job: Any = None, replica: Any = None, task: Any = None, device_type: Any = None,
        device_index: Any = None,
    ) -> None:  # fmt: skip
        kind = _text(device_type)
        self._name = DeviceName(
            _text(job),
            _number("replica", replica),
            _number("task", task),
            kind.upper() if kind in ("cpu", "gpu") else kind,
            _number("device_index", device_index),
        )

    @classmethod
    def of(cls, name: DeviceName) -> Self:
        """The spec of a name."""
        made = cls()
        made._name = name
        return made

    @classmethod
    def from_string(cls, spec: str | None) -> Self:
        """The spec that a text such as `/job:ps/cpu:0` tells.

        Args:
            spec: parts may be missing, and stand in any order.

        Raises:
            ArgumentError: a part is none of a device's.
        """
        return cls.of(parse(spec or ""))

    def parse_from_string(self, spec: str | None) -> Self:
        """Takes the parts that a text tells in place of its own; returns itself.

        Args:
            spec: as of `from_string`.
        """
        self._name = parse(spec or "")
        return self

    def to_string(self) -> str:
        """`/job:<name>/replica:<n>/task:<n>/device:<type>:<n>`, without what is not told."""
        return str(self._name)

    def merge_from(self, dev: DeviceSpec) -> None:
        """Takes the parts that another spec tells in place of its own.

        Args:
            dev: the other spec.
        """
        self._name = self._name.merged(dev.as_name())

    def make_merged_spec(self, dev: DeviceSpec) -> DeviceSpec:
        """A spec with the parts that another one tells in place of this one's.

        Args:
            dev: the other spec.
        """
        return type(self).of(self._name.merged(dev.as_name()))

    def replace(self, **kwargs: Any) -> DeviceSpec:
        """A spec with other parts.

        Args:
            kwargs: parts by name.
        """
        parts = {
            "job": self.job, "replica": self.replica, "task": self.task,
            "device_type": self.device_type, "device_index": self.device_index,
        }  # fmt: skip
        return type(self)(**{**parts, **kwargs})

    def as_name(self) -> DeviceName:
        """The name that it stands for now."""
        return self._name

    @property
    def job(self) -> str | None:
        """The name of a job."""
        return self._name.job

    @job.setter
    def job(self, job: Any) -> None:
        self._name = replace(self._name, job=_text(job))

    @property
    def replica(self) -> int | None:
        """The number of a replica."""
        return self._name.replica

    @replica.setter
    def replica(self, replica_: Any) -> None:
        self._name = replace(self._name, replica=_number("replica", replica_))

    @property
    def task(self) -> int | None:
        """The number of a process."""
        return self._name.task

    @task.setter
    def task(self, task: Any) -> None:
        self._name = replace(self._name, task=_number("task", task))

    @property
    def device_type(self) -> str | None:
        """`CPU` or `GPU`."""
        return self._name.kind

    @device_type.setter
    def device_type(self, device_type: Any) -> None:
        self._name = replace(self._name, kind=type(self)(device_type=device_type).device_type)

    @property
    def device_index(self) -> int | None:
        """The number of a device in the process."""
        return self._name.index

    @device_index.setter
    def device_index(self, device_index: Any) -> None:
        self._name = replace(self._name, index=_number("device_index", device_index))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceSpec) and self._name == other._name

    def __hash__(self) -> int:
        return hash(self._name)

    def __repr__(self) -> str:
        parts = {"job": self.job, "replica": self.replica, "task": self.task,
                 "device_type": self.device_type, "device_index": self.device_index}  # fmt: skip
        return f"<DeviceSpec({', '.join(f'{name}={x}' for name, x in parts.items())})>"


def parse(text: Any) -> DeviceName:
    """The name that a text tells.

    Raises:
        ArgumentError: it is no text, or a part is none of a device's.
    """
    if not isinstance(text, str):
        raise ArgumentError(
            f"device: expected a text, a tf.DeviceSpec, a function or None, got {text!r}"
            f"{at_user_line()}"
        )
    try:
        return DeviceName.parse(text)
    except ArgumentError as error:
        raise ArgumentError(f"{error}{at_user_line()}") from None


def _text(given: Any) -> str | None:
    return None if given is None else str(given)


def _number(name: str, given: Any) -> int | None:
    if given is None:
        return None
    try:
        return int(given)
    except (TypeError, ValueError):
        text = f"DeviceSpec: expected {name} to be a number or None, got {given!r}{at_user_line()}"
        raise ArgumentError(text) from None
