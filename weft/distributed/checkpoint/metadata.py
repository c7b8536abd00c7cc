"""The contents of a checkpoint: names, types and shapes of tensors, and their shards."""

from __future__ import annotations

from dataclasses import dataclass

from weft.ir.dtype import DType

__all__ = ["BytesStorageMetadata", "ChunkStorageMetadata", "Metadata", "TensorStorageMetadata"]

Sizes = tuple[int, ...]


@dataclass(frozen=True)
class ChunkStorageMetadata:
    """A shard of a tensor.

    Attributes:
        offsets: in each dimension of the whole tensor.
        sizes: in each dimension.
    """

    offsets: Sizes
    sizes: Sizes


@dataclass(frozen=True)
class TensorProperties:
    """The properties of a tensor.

    Attributes:
        dtype: its element type.
    """

    dtype: DType


@dataclass(frozen=True)
class TensorStorageMetadata:
    """A tensor.

    Attributes:
        properties: its element type.
        size: the shape of the whole tensor.
        chunks: the shards in which it is saved.
    """

    properties: TensorProperties
    size: Sizes
    chunks: list[ChunkStorageMetadata]


@dataclass(frozen=True)
class BytesStorageMetadata:
    """A number, a string or another value that is not a tensor."""


@dataclass
class Metadata:
    """What `save` returns and `FileSystemReader.read_metadata` reads.

    Attributes:
        state_dict_metadata: by path: the keys, joined by dots.
    """

    state_dict_metadata: dict[str, TensorStorageMetadata | BytesStorageMetadata]
