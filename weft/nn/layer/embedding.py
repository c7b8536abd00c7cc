"""Table lookups: `Embedding`, `EmbeddingBag`."""

from __future__ import annotations

from typing import Any, Self

from weft.documentation import arguments_of
from weft.eager.functions.creation.constructor import empty
from weft.eager.tensor.dispatch import leaf
from weft.errors import ShapeError
from weft.ir.node import at_user_line
from weft.ir.shape import show
from weft.nn import init
from weft.nn.functional.embedding import embedding, embedding_bag, table_row
from weft.nn.layer.base import Layer
from weft.nn.parameter import Parameter

__all__ = ["Embedding", "EmbeddingBag"]


class _Table(Layer):
    padding_idx: int | None
    _shown = "num_embeddings, embedding_dim, padding_idx=None"

    def __init__(
        self, rows: int, width: int, padding_idx: int | None, weight: Any, options: Any,
        freeze: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_embeddings = rows
        self.embedding_dim = width
        self.padding_idx = table_row(type(self).__name__, padding_idx, rows)
        if weight is None:
            self.weight = Parameter(empty(rows, width, **options))
            self.reset_parameters()
        else:
            if tuple(weight.shape) != (rows, width):
                raise ShapeError(
                    f"{type(self).__name__}: expected a weight {show((rows, width))}, got "
                    f"{show(weight.shape)}{at_user_line()}"
                )
            given = isinstance(weight, Parameter)
            self.weight = weight if given else Parameter(weight, requires_grad=not freeze)
        if freeze:
            self.weight.requires_grad_(False)

    def reset_parameters(self) -> None:
        """Standard normal; the padding row is zero."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            array = self.weight.array.copy()
            array[self.padding_idx] = 0
            self.weight.replace(leaf(array))


@arguments_of(embedding)
class Embedding(_Table):
    """A table whose rows are looked up by index.

    Args:
        num_embeddings: the number of rows.
        embedding_dim: the width of a row.
        padding_idx: a row that starts as 0 and gets no gradient.
        device: only the CPU.
        dtype: the parameters' element type, by default `weft.get_default_dtype()`.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Any = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        options = {"device": device, "dtype": dtype}
        super().__init__(num_embeddings, embedding_dim, padding_idx, _weight, options, _freeze)
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse

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


@arguments_of(embedding_bag)
class EmbeddingBag(_Table):
    """Sums, means or maxima over bags of rows of a table.

    Args:
        num_embeddings: the number of rows.
        embedding_dim: the width of a row.
        padding_idx: a row that starts as 0 and is not counted.
        device: only the CPU.
        dtype: the parameters' element type, by default `weft.get_default_dtype()`.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Any = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        options = {"device": device, "dtype": dtype}
        super().__init__(num_embeddings, embedding_dim, padding_idx, _weight, options)
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset

    def forward(self, input: Any, offsets: Any = None, per_sample_weights: Any = None) -> Any:
        """Integers (bags, size), or (n) with offsets (bags), to (bags, embedding_dim)."""
        return embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq,
            self.mode, self.sparse, per_sample_weights, self.include_last_offset,
            self.padding_idx,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """The sizes."""
        return f"{super().extra_repr()}, mode={self.mode!r}"

    @classmethod
    def from_pretrained(cls, embeddings: Any, freeze: bool = True, **options: Any) -> Self:
        """A layer with this table, which is trained only if `freeze` is false."""
        rows, width = embeddings.shape
        made = cls(rows, width, _weight=embeddings, **options)
        made.weight.requires_grad_(not freeze)
        return made
