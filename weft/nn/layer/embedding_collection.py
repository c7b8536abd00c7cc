"""`EmbeddingBagCollection`: all embedding tables of a model, by one kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from weft.autograd import Function
from weft.eager.functions.shape.joining import cat
from weft.eager.tensor.dispatch import leaf, wrap
from weft.errors import ArgumentError, ShapeError
from weft.nn.functional.embedding import embedding_bag
from weft.nn.layer.embedding import EmbeddingBag
from weft.nn.layer.keyed import KeyedJaggedTensor, KeyedTensor, floats_of
from weft.nn.module.module import Module
from weft.table.bags import BagInput, DenseTable, DenseTables
from weft.table.optimizer import RowOptimizer

__all__ = ["EmbeddingBagCollection", "EmbeddingBagConfig"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class EmbeddingBagConfig:
    """A table of an `EmbeddingBagCollection`.

    Args:
        name: of the table.
        embedding_dim: the width of a row.
        num_embeddings: the number of rows.
        feature_names: the features that are looked up in it.
        pooling: `sum` or `mean`.
    """

    name: str
    embedding_dim: int
    num_embeddings: int
    feature_names: Sequence[str]
    pooling: str = "sum"

    def __post_init__(self) -> None:
        sizes = (self.embedding_dim, self.num_embeddings)
        if min(sizes) < 1 or not self.feature_names or isinstance(self.feature_names, str):
            raise ArgumentError.here(
                f"EmbeddingBagConfig {self.name!r}: expected sizes above 0 and a list of feature "
                f"names, got {sizes} and {self.feature_names!r}"
            )
        if self.pooling not in ("sum", "mean"):
            raise ArgumentError.here(
                f"EmbeddingBagConfig {self.name!r}: expected pooling sum or mean, "
                f"got {self.pooling!r}"
            )


class _Part(NamedTuple):
    """Tables of one width and pooling, and their features in order."""

    tables: DenseTables
    features: list[str]


class _Pooled(Function):
    """Sums of bags, and the update of the rows when their gradient comes."""

    @staticmethod
    def forward(ctx: Any, anchor: Any, owner: Any, given: KeyedJaggedTensor) -> Any:
        """The sums."""
        ctx.owner = owner
        out, ctx.inputs = owner.pooled(given)
        return wrap(leaf(out))

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        """Updates the tables."""
        ctx.owner.update(ctx.inputs, np.ascontiguousarray(g.array, np.float32))
        return None, None, None


class EmbeddingBagCollection(Module):
    """All embedding tables of a model, summed up by bags of ids.

    With an optimizer of rows, one kernel looks up all tables of a width, and one updates them in
    the backward pass: only rows that have a gradient, each once, by the sum of its gradients. Such
    tables are no parameters, so that the model's optimizer leaves them alone; their rows and the
    optimizer's state are in the state dict. Without one, tables are parameters as those of
    `EmbeddingBag`.

    Args:
        tables: what they are.
        optimizer: how rows are updated: `weft.table.SGD`, `Adagrad`, `Adam` or `FTRL`.
        threads: how many a pass may use; by default as many as pay.

    Example:
        >>> import weft as wf
        >>> from weft.table import SGD
        >>> tables = [
        ...     wf.nn.EmbeddingBagConfig("users", 2, 10, ["user"]),
        ...     wf.nn.EmbeddingBagConfig("items", 2, 10, ["bought", "seen"]),
        ... ]
        >>> bags = wf.nn.EmbeddingBagCollection(tables, SGD(lr=1.0))
        >>> bags.rows("items")[:] = 1.0
        >>> ids = {"user": [[1]], "bought": [[2]], "seen": [[2, 3]]}
        >>> y = bags(ids)
        >>> y["seen"].tolist()
        [[2.0, 2.0]]
        >>> y.values.sum().backward()
        >>> bags.rows("items")[:4].tolist()
        [[1.0, 1.0], [1.0, 1.0], [-1.0, -1.0], [0.0, 0.0]]
    """

    def __init__(
        self, tables: Sequence[EmbeddingBagConfig], optimizer: RowOptimizer | None = None,
        threads: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.configs = list(tables)
        self.optimizer = optimizer
        self.lr: float | None = None
        self.updates = 0
        _check(self.configs)
        self._keys = [key for config in self.configs for key in config.feature_names]
        self._widths = [c.embedding_dim for c in self.configs for _ in c.feature_names]
        bags = {
            c.name: EmbeddingBag(c.num_embeddings, c.embedding_dim, mode=c.pooling)
            for c in self.configs
        }
        if optimizer is None:
            for name, bag in bags.items():
                self.add_module(name, bag)
            self._parts: list[_Part] = []
        else:
            rows = {name: bag.weight.array.astype(np.float32) for name, bag in bags.items()}
            self._parts = self._fused(rows, optimizer, threads)
        self._anchor = [leaf(np.zeros((), np.float32))]
        self._source = wrap(self._anchor[0]).requires_grad_() if optimizer else None

    def forward(self, features: KeyedJaggedTensor | Mapping[str, Any]) -> KeyedTensor:
        """Bags of ids by feature to sums, (bags, sum of the features' widths)."""
        given = features
        if not isinstance(given, KeyedJaggedTensor):
            given = KeyedJaggedTensor.of({key: given[key] for key in self._keys})
        if self.optimizer is None:
            values = self._plain(given.permuted(self._keys))
        else:
            values = _Pooled.apply(self._source, self, given)
        return KeyedTensor(self._keys, self._widths, values)

    def rows(self, name: str) -> Array:
        """The rows of a table that an optimizer of rows updates, (rows, width).

        Args:
            name: of the table.
        """
        return self._table(name).rows

    def pooled(self, given: KeyedJaggedTensor) -> tuple[Array, list[BagInput]]:
        """The sums as an array, and what was looked up."""
        out = np.empty((given.bags, sum(self._widths)), np.float32)
        inputs: list[BagInput] = []
        for part in self._parts:
            some = given.permuted(part.features)
            inputs.append(BagInput(some.values, some.offsets, some.weights))
            part.tables.pool(inputs[-1], out)
        return out, inputs

    def update(self, inputs: Sequence[BagInput], g: Array) -> None:
        """Updates the rows by the gradient of the sums.

        Args:
            inputs: what was looked up.
            g: the gradient, (bags, columns).
        """
        self.updates += 1
        for part, given in zip(self._parts, inputs, strict=True):
            part.tables.update(given, g, self.updates, self.lr)

    def extra_repr(self) -> str:
        """The tables."""
        return ", ".join([f"{c.name}: {c.num_embeddings}x{c.embedding_dim}" for c in self.configs])

    def get_extra_state(self) -> dict[str, Any]:
        """The rows and the optimizer's state."""
        state: dict[str, Any] = {"updates": self.updates}
        for table in self._tables():
            state[f"{table.name}.weight"] = wrap(leaf(table.rows.copy()))
            for name, slot in zip(self._slot_names(), table.slots, strict=True):
                state[f"{table.name}.{name}"] = wrap(leaf(slot.copy()))
        return state

    def set_extra_state(self, state: Mapping[str, Any]) -> None:
        """Restores them."""
        places = {f"{table.name}.weight": table.rows for table in self._tables()}
        for table in self._tables():
            names = [f"{table.name}.{name}" for name in self._slot_names()]
            places.update(zip(names, table.slots, strict=True))
        arrays = {name: floats_of(state[name]) for name in places}
        for name, place in places.items():
            if arrays[name].shape != place.shape:
                raise ShapeError.here(
                    f"EmbeddingBagCollection: {name}: expected {place.shape}, "
                    f"got {arrays[name].shape}"
                )
        for name, place in places.items():
            place[...] = arrays[name]
        self.updates = int(state["updates"])

    def _fused(
        self, rows: Mapping[str, Array], optimizer: RowOptimizer, threads: int | None
    ) -> list[_Part]:
        starts = dict(zip(self._keys, np.append(0, np.cumsum(self._widths)).tolist(), strict=False))
        alike: dict[tuple[int, str], list[EmbeddingBagConfig]] = {}
        for config in self.configs:
            alike.setdefault((config.embedding_dim, config.pooling), []).append(config)
        parts: list[_Part] = []
        for (_, pooling), configs in alike.items():
            tables = [
                DenseTable(
                    c.name, rows[c.name],
                    [np.full_like(rows[c.name], x) for x in optimizer.beginnings()],
                    [starts[key] for key in c.feature_names],
                )
                for c in configs
            ]  # fmt: skip
            keys = [key for c in configs for key in c.feature_names]
            parts.append(_Part(DenseTables(tables, pooling == "mean", optimizer, threads), keys))
        return parts

    def _plain(self, given: KeyedJaggedTensor) -> Any:
        results: list[Any] = []
        number = 0
        for config in self.configs:
            weight = self._modules[config.name].weight  # type: ignore[union-attr]
            for _ in config.feature_names:
                bounds = given.offsets[number * given.bags : (number + 1) * given.bags + 1]
                begin, end = int(bounds[0]), int(bounds[-1])
                factors = None if given.weights is None else given.weights[begin:end]
                results.append(
                    embedding_bag(
                        wrap(leaf(given.values[begin:end])), weight,
                        wrap(leaf(bounds[:-1] - begin)), mode=config.pooling,
                        per_sample_weights=None if factors is None else wrap(leaf(factors)),
                    )
                )  # fmt: skip
                number += 1
        return cat(results, 1)

    def _tables(self) -> list[DenseTable]:
        return [table for part in self._parts for table in part.tables.tables]

    def _table(self, name: str) -> DenseTable:
        for table in self._tables():
            if table.name == name:
                return table
        names = ", ".join([table.name for table in self._tables()])
        raise ArgumentError.here(
            f"EmbeddingBagCollection: expected a table among {names or 'none'}, got {name!r}"
        )

    def _slot_names(self) -> tuple[str, ...]:
        return () if self.optimizer is None else self.optimizer.slots


def _check(configs: Sequence[EmbeddingBagConfig]) -> None:
    names = [config.name for config in configs]
    keys = [key for config in configs for key in config.feature_names]
    for what, found in (("tables", names), ("features", keys)):
        twice = sorted({name for name in found if found.count(name) > 1})
        if twice or not found:
            raise ArgumentError.here(
                f"EmbeddingBagCollection: expected {what} of different names, "
                f"got {twice[0] if twice else 'none'}"
            )
