"""The device of tensors; the only one is the CPU."""

from __future__ import annotations

from typing import Any, Final, NoReturn, Self

from weft.eager.record.mode import ABSENT_DEVICES
from weft.errors import ConfigError
from weft.ir.dtype import NAMED


class Device:
    """A device; `weft.device` is this class, for `isinstance`.

    `with device:` makes it the device of new tensors, which it is anyway.

    Args:
        spec: a name, such as `"cpu"`, or a device.
        index: any number, or none: programs of several ranks number the CPU, as in `cpu:1`.

    Raises:
        ConfigError: there is no such device.

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
        if kind != "cpu" or twice or not (given is None or given.isdecimal()):
            text = repr(spec) if index is None else f"{spec!r} and index {index}"
            advice = _ADVICE if kind in ABSENT_DEVICES else ""
            raise ConfigError.here(
                f"device: expected 'cpu', the only device here, got {text}{advice}"
            )
        self.type = "cpu"
        self.index = None if given is None else int(given)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self.index == other.index

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


def check_device(spec: Any) -> None:
    """Check a `device=` argument: the CPU or `None`."""
    if spec is not None:
        Device(spec)


def is_device(given: Any) -> bool:
    """Whether an argument of `to` means a device: also the number of one, as in PyTorch."""
    number = isinstance(given, int) and not isinstance(given, bool)
    return number or isinstance(given, Device) or (isinstance(given, str) and given not in NAMED)
