"""Compression of eager tensors."""

from __future__ import annotations

from weft.horovod.compression import Compressor, NoneCompressor, fp16_by
from weft.ir.dtype import float16


class Compression:
    """Ways to send less.

    Attributes:
        none: tensors as they are.
        fp16: float16, half the bytes; sums are taken in float32.
    """

    none: type[Compressor] = NoneCompressor
    fp16: type[Compressor] = fp16_by(lambda tensor, dtype: tensor.to(dtype), float16)
