"""Table lookups: `Embedding`, `EmbeddingBag`."""

from __future__ import annotations

from dataclasses import InitVar
from typing import Any, Self

from weft.eager.functions.creation.constructor import empty
from weft.eager.tensor.dispatch import leaf
from weft.errors import ShapeError
from weft.ir.shape import show
from weft.nn import init
from weft.nn.functional.embedding import embedding, embedding_bag, table_row
from weft.nn.layer.base import Layer, layer
from weft.nn.parameter import Parameter

__all__ = ["Embedding", "EmbeddingBag"]


class _Table(Layer):
    """A table of rows.

    Args:
        num_embeddings: the number of rows.
        embedding_dim: the width of a row.
        padding_idx: a row that starts as 0 and gets no gradient.
    """

    num_embeddings: int
    embedding_dim: int
    padding_idx: int | None
    _shown = "num_embeddings, embedding_dim, padding_idx=None"

    def __post_init__(self, _weight: Any, _freeze: bool, device: Any, dtype: Any) -> None:
        name, shape = type(self).__name__, (self.num_embeddings, self.embedding_dim)
        self.padding_idx = table_row(name, self.padding_idx, self.num_embeddings)
        if _weight is None:
            self.weight = Parameter(empty(shape, device=device, dtype=dtype))
            self.reset_parameters()
        else:
            if tuple(_weight.shape) != shape:
                raise ShapeError.here(
                    f"{name}: expected a weight {show(shape)}, got {show(_weight.shape)}"
                )
            made = isinstance(_weight, Parameter)
            self.weight = _weight if made else Parameter(_weight, requires_grad=not _freeze)
        if _freeze:
            self.weight.requires_grad_(False)

    def reset_parameters(self) -> None:
        """Standard normal; the padding row is zero."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            array = self.weight.array.copy()
            array[self.padding_idx] = 0
            self.weight.replace(leaf(array, self.weight.lazy))


@layer(embedding)
class Embedding(_Table):
    """A table whose rows are looked up by index.

    Args:
        padding_idx: a row that starts as 0 and gets no gradient.
    """

    num_embeddings: int
    embedding_dim: int
    padding_idx: int | None = None
    max_norm: float | None = None
    norm_type: float = 2.0
    scale_grad_by_freq: bool = False
    sparse: bool = False
    _weight: InitVar[Any] = None
    _freeze: InitVar[bool] = False
    device: InitVar[Any] = None
    dtype: InitVar[Any] = None

    def forward(self, input: Any) -> Any:
        """Integers of any shape (...) to (..., embedding_dim)."""
        return embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type,
            self.scale_grad_by_freq, self.sparse,
        )  # fmt: skip

    @classmethod
    def from_pretrained(
        cls, embeddings: Any, freeze: bool = True, padding_idx: int | None = None, **options: Any
    ) -> Self:
        """A layer with this table, which is trained only if `freeze` is false."""
        rows, width = embeddings.shape
        return cls(rows, width, padding_idx, _weight=embeddings, _freeze=freeze, **options)


@layer(embedding_bag)
class EmbeddingBag(_Table):
    """Sums, means or maxima over bags of rows of a table.

    Args:
        padding_idx: a row that starts as 0 and is not counted.
    """

    num_embeddings: int
    embedding_dim: int
    max_norm: float | None = None
    norm_type: float = 2.0
    scale_grad_by_freq: bool = False
    mode: str = "mean"
    sparse: bool = False
    _weight: InitVar[Any] = None
    include_last_offset: bool = False
    padding_idx: int | None = None
    device: InitVar[Any] = None
    dtype: InitVar[Any] = None
    _shown = "num_embeddings, embedding_dim, padding_idx=None, mode="

    def __post_init__(self, _weight: Any, device: Any, dtype: Any) -> None:
        super().__post_init__(_weight, False, device, dtype)

    def forward(self, input: Any, offsets: Any = None, per_sample_weights: Any = None) -> Any:
        """Integers (bags, size), or (n) with offsets (bags), to (bags, embedding_dim)."""
        return embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq,
            self.mode, self.sparse, per_sample_weights, self.include_last_offset,
            self.padding_idx,
        )  # fmt: skip

    @classmethod
    def from_pretrained(cls, embeddings: Any, freeze: bool = True, **options: Any) -> Self:
        """A layer with this table, which is trained only if `freeze` is false."""
        rows, width = embeddings.shape
        made = cls(rows, width, _weight=embeddings, **options)
        made.weight.requires_grad_(not freeze)
        return made
