"""Tensors for other libraries as DLPack capsules."""

from __future__ import annotations

from typing import Any

from weft.eager.tensor.interchange.interchange import from_dlpack

__all__ = ["from_dlpack", "to_dlpack"]


def to_dlpack(tensor: Any) -> Any:
    """A capsule of a tensor's memory; `from_dlpack` takes it once.

    >>> import weft as wf
    >>> from weft.utils.dlpack import to_dlpack
    >>> wf.from_dlpack(to_dlpack(wf.ones(2))).tolist()
    [1.0, 1.0]
    """
    return tensor.__dlpack__(max_version=(1, 0))  # older versions are read-only
