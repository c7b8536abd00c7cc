"""Compressors: what is sent instead of a tensor, by operations of the front end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Compressor:
    """What is sent instead of a tensor; programs may pass classes of their own."""

    @staticmethod
    def compress(tensor: Any) -> tuple[Any, Any]:
        """The tensor to send, and the context for `decompress`."""
        return tensor, None

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        """The result, from the reduction of the sent tensors."""
        return tensor


class NoneCompressor(Compressor):
    """Tensors are sent as they are."""


def fp16_by(cast: Callable[[Any, Any], Any], half: Any) -> type[Compressor]:
    """The compressor that sends floating-point tensors as float16.

    Args:
        cast: converts a tensor to another type.
        half: the front end's float16.
    """

    class FP16Compressor(Compressor):
        """Floating-point tensors are sent as float16; sums are taken in float32."""

        @staticmethod
        def compress(tensor: Any) -> tuple[Any, Any]:
            dtype = tensor.dtype
            return (cast(tensor, half) if dtype.is_floating and dtype != half else tensor), dtype

        @staticmethod
        def decompress(tensor: Any, ctx: Any) -> Any:
            return tensor if tensor.dtype == ctx else cast(tensor, ctx)

    return FP16Compressor
