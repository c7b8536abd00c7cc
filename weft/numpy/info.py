"""Inspection of this namespace, as defined by the Array API."""

from __future__ import annotations

from typing import Any

from weft.eager.tensor.device import CPU, Device, check_device
from weft.ir import dtype as types
from weft.ir.dtype import DType
from weft.numpy.promotion import isdtype

__all__ = ["__array_namespace_info__"]

_STANDARD = (
    types.bool_, types.int8, types.int16, types.int32, types.int64, types.uint8, types.uint16,
    types.uint32, types.uint64, types.float32, types.float64, types.complex64, types.complex128,
)  # fmt: skip


class __array_namespace_info__:
    """Capabilities, default types and devices."""

    def capabilities(self) -> dict[str, Any]:
        """Support for optional parts of the standard."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Device:
        """The default device."""
        return CPU

    def devices(self) -> list[Device]:
        """All devices."""
        return [CPU]

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        """The default dtypes."""
        check_device(device)
        return {
            "real floating": types.float64,
            "complex floating": types.complex128,
            "integral": types.int64,
            "indexing": types.int64,
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, DType]:
        """The dtypes of the standard by name, optionally only those of a kind."""
        check_device(device)
        return {d.name: d for d in _STANDARD if kind is None or isdtype(d, kind)}
