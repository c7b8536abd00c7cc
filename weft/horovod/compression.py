"""Compressors: what is sent instead of a tensor, by the front end's own operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Compressor:
    """What is sent instead of a tensor; a class of your own may take its place."""

    @staticmethod
    def compress(tensor: Any) -> tuple[Any, Any]:
        """The tensor that is sent, and what `decompress` needs."""
        return tensor, None

    @staticmethod
    def decompress(tensor: Any, ctx: Any) -> Any:
        """The result, from that of the tensors that were sent."""
        return tensor


class NoneCompressor(Compressor):
    """Tensors are sent as they are."""


def fp16_by(cast: Callable[[Any, Any], Any], half: Any) -> type[Compressor]:
    """The compressor that sends floating-point tensors as float16.

    Args:
        cast: gives a tensor of another type.
        half: the front end's float16.
    """

    class FP16Compressor(Compressor):
        """Floating-point tensors are sent as float16; sums are taken in float32."""

        @staticmethod
        def compress(tensor: Any) -> tuple[Any, Any]:
            kind = tensor.dtype
            return (cast(tensor, half) if kind.is_floating and kind != half else tensor), kind

        @staticmethod
        def decompress(tensor: Any, ctx: Any) -> Any:
            return tensor if tensor.dtype == ctx else cast(tensor, ctx)

    return FP16Compressor
