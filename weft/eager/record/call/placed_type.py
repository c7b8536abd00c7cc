"""Types of tensors on other CPUs than the first.

The type of a tensor says where it is, so operations on tensors of the first CPU, which are nearly
all, cost nothing more: what a call gives is decided once for the types of its inputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from weft.errors import ArgumentError
from weft.ir.device import DeviceName
from weft.ir.node import TensorType
from weft.runtime.device.local import LOCAL


class PlacedType(TensorType):
    """The type of a tensor on another CPU than the first.

    Attributes:
        device: its number.
    """

    device: int


def device_of(kind: TensorType) -> int:
    """The number of the CPU of tensors of this type."""
    return kind.device if type(kind) is PlacedType else 0


def placed(kind: TensorType, device: int) -> TensorType:
    """The type of the same tensors on a CPU."""
    if not device:
        return TensorType(*kind)
    found = PlacedType(*kind)
    found.device = device
    return found


def common_device(name: str, types: Iterable[TensorType]) -> int:
    """The CPU of what a call on inputs of these types gives.

    Numbers, and tensors of rank 0 on the first CPU, go with tensors anywhere.

    Raises:
        ArgumentError: the inputs are on several.
    """
    found = 0
    first: list[int] = []
    for kind in types:
        device = device_of(kind)
        if not device:
            first += [0] * bool(kind.shape)
        elif found and device != found:
            raise _several(name, [found, device])
        found = found or device
    if found and first:
        raise _several(name, [0, found])
    return found


def refuse_placed(types: Iterable[TensorType]) -> None:
    """Refuse tensors of a function that is traced, unless they are on the first CPU.

    Raises:
        ArgumentError: one is on another.
    """
    for kind in types:
        if device_of(kind):
            raise ArgumentError.here(
                f"expected tensors on the first CPU in a function that is traced (by jit, vmap, "
                f"...), got one on {shown(device_of(kind))}; move it by x.to('cpu')"
            )


def _several(name: str, devices: Sequence[int]) -> ArgumentError:
    here, there = map(shown, devices)
    return ArgumentError.here(
        f"{name}: expected all tensors on the same device, got tensors on {here} and {there}; "
        f"move some by x.to({there!r})"
    )


def shown(device: int) -> str:
    """`cpu` or `cpu:1`."""
    return f"cpu:{device}" if device else "cpu"


def full_name(device: int) -> str:
    """The name of a CPU of this process as sessions know it."""
    found = _NAMES.get(device)
    if found is None:
        found = _NAMES[device] = str(LOCAL.merged(DeviceName(kind="CPU", index=device)))
    return found


_NAMES: Final[dict[int, str]] = {}
