"""`torch.types` and `torch.nn.common_types`: what annotations name."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import IO, Any, TypeAlias

from weft.eager.tensor.tensor import Tensor

__all__ = ["Device", "FileLike", "Number", "Storage"]

Number: TypeAlias = int | float | bool
Device: TypeAlias = Any
FileLike: TypeAlias = str | os.PathLike[str] | IO[bytes]
Storage: TypeAlias = Any
TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
size: TypeAlias = int | tuple[int, ...]
