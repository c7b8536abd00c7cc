"""What a checkpoint contains: names, types and shapes of tensors, and the pieces of each."""

from __future__ import annotations

from dataclasses import dataclass

from weft.ir.dtype import DType

__all__ = ["BytesStorageMetadata", "ChunkStorageMetadata", "Metadata", "TensorStorageMetadata"]

Sizes = tuple[int, ...]


@dataclass(frozen=True)
class ChunkStorageMetadata:
    """A piece of a tensor: its offset and its size in each dimension."""

    offsets: Sizes
    sizes: Sizes


@dataclass(frozen=True)
class TensorProperties:
    """The element type of a tensor."""

    dtype: DType


@dataclass(frozen=True)
class TensorStorageMetadata:
    """A tensor: the shape of the whole, and the pieces that it is saved in."""

    properties: TensorProperties
    size: Sizes
    chunks: list[ChunkStorageMetadata]


@dataclass(frozen=True)
class BytesStorageMetadata:
    """A number, a string or another value that is no tensor."""


@dataclass
class Metadata:
    """What `save` returns and `FileSystemReader.read_metadata` reads.

    Attributes:
        state_dict_metadata: by the path of keys, joined by dots.
    """

    state_dict_metadata: dict[str, TensorStorageMetadata | BytesStorageMetadata]
