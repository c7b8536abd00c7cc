"""Devices of tensors: as many CPUs as `set_cpu_devices` was told, one by default."""

from __future__ import annotations

from typing import Any, Final, NoReturn, Self

from weft import config
from weft.eager.record.call import placed_type
from weft.eager.record.call.plan import transfer_plan
from weft.eager.record.pending.lazy import Lazy
from weft.eager.record.pending.mode import ABSENT_DEVICES
from weft.eager.record.pending.state import trace
from weft.errors import ConfigError
from weft.ir.dtype import NAMED


class Device:
    """A device; `weft.device` is this class, for `isinstance`.

    `with device:` makes it the device of new tensors.

    Args:
        spec: a name, such as `"cpu"` or `"cpu:1"`, or a device.
        index: the number of a CPU. If there is only one, any number means it, as programs of
            several ranks number the CPU.

    A device that is not there, such as `"cuda"`, is a name until a tensor is to be on it.

    Raises:
        ConfigError: it is no device's name.

    >>> Device("cpu")
    device(type='cpu')
    """

    type: str
    index: int | None
    __slots__ = ("index", "type")

    def __init__(self, spec: Any = None, index: int | None = None, *, type: Any = None) -> None:
        spec = type if spec is None else spec
        kind, colon, number = str(spec).partition(":")
        twice = colon and index is not None
        given = str(index) if index is not None else number if colon else None
        known = kind == "cpu" or kind in ABSENT_DEVICES
        if not known or twice or not (given is None or given.isdecimal()):
            text = repr(spec) if index is None else f"{spec!r} and index {index}"
            raise ConfigError.here(f"device: expected 'cpu', the only device here, got {text}")
        self.type = kind
        self.index = None if given is None else int(given)

    def __enter__(self) -> Self:
        now, number = trace.now, number_of(self)
        now.devices.append(now.device)
        now.device = number
        return self

    def __exit__(self, *error: object) -> None:
        trace.now.device = trace.now.devices.pop()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Device):
            return False
        return (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type={self.type!r}{index})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"


_ADVICE: Final = (
    "; choose by device('cuda' if weft.cuda.is_available() else 'cpu'), or write device('cpu')"
)


def refuse_cuda(name: str) -> NoReturn:
    """Raise the error of a method that moves to a CUDA device.

    Raises:
        ConfigError: always.
    """
    raise ConfigError.here(
        f"{name}: there is no CUDA device; leave the call out, or write x.to(device) with device = "
        f"weft.device('cuda' if weft.cuda.is_available() else 'cpu')"
    )


device = Device
CPU: Final = Device("cpu")


def number_of(spec: Any) -> int:
    """The number of the CPU that a `device=` argument means; `None` is that of new tensors.

    Raises:
        ConfigError: there is no such device.
    """
    if spec is None:
        return trace.now.device
    if spec is CPU or spec == "cpu":
        return 0
    found = spec if isinstance(spec, Device) else Device(spec)
    if found.type == "meta":  # tensors have data all the same
        return 0
    if found.type != "cpu":
        raise ConfigError.here(
            f"device: expected 'cpu', the only device here, got {str(found)!r}{_ADVICE}"
        )
    number = found.index or 0
    count = int(config.get("cpu_devices"))
    if count == 1:
        return 0
    if number >= count:
        names = ", ".join([f"cpu:{i}" for i in range(count)])
        raise ConfigError.here(f"device: expected one of {names}, got cpu:{number}")
    return number


def device_of(lazy: Lazy) -> Device:
    """Where a value is."""
    number = placed_type.device_of(lazy.type)
    return Device("cpu", number) if number else CPU


def moved(lazy: Lazy, number: int) -> Lazy:
    """A value on the CPU with this number; gradients flow through.

    Raises:
        ConfigError: it would be moved within a traced function.
    """
    now = trace.now
    if placed_type.device_of(lazy.type) == number:
        return lazy
    if now.depth:
        raise ConfigError.here(
            "to: tensors cannot be moved within a function that is traced (by jit, vmap, ...)"
        )
    return now.record(transfer_plan(lazy.type, number), (lazy,))[0]


def check_device(spec: Any) -> None:
    """Check a `device=` argument of what exists on the first CPU only: that, or `None`.

    Raises:
        ConfigError: another device.
    """
    number = 0 if spec is None else number_of(spec)
    if number:
        raise ConfigError.here(f"device: expected the first CPU here, got cpu:{number}; use to()")


def set_cpu_devices(count: int) -> None:
    """Set how many CPUs there are as devices: `cpu` or `cpu:0`, `cpu:1`, ...

    Each runs programs with threads of its own, and has its own memory for them; sessions of
    `weft.tf1` with `device_count={"CPU": n}` run on the same. Tensors are on the first one unless
    they are created on, or moved to, another one. `WEFT_CPU_DEVICES` sets the number, too.

    Args:
        count: how many; with one, every number means it.

    Raises:
        ConfigError: no number from 1 to 64.

    >>> import weft as wf
    >>> wf.set_cpu_devices(2)
    >>> x = wf.ones(2, device="cpu:1")
    >>> x.device, (x + 1).tolist(), x.to("cpu").device
    (device(type='cpu', index=1), [2.0, 2.0], device(type='cpu'))
    >>> wf.set_cpu_devices(1)
    """
    config.change("cpu_devices", count)


def get_cpu_devices() -> int:
    """How many CPUs there are as devices."""
    return int(config.get("cpu_devices"))


def is_device(given: Any) -> bool:
    """Whether an argument of `to` means a device: also the number of one, as in PyTorch."""
    number = isinstance(given, int) and not isinstance(given, bool)
    return number or isinstance(given, Device) or (isinstance(given, str) and given not in NAMED)
