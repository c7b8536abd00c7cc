"""`EmbeddingBagCollection`: all embedding tables of a model, by one kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from weft.autograd import Function
from weft.eager.functions.shape.joining import cat
from weft.eager.tensor.dispatch import leaf, wrap
from weft.errors import ArgumentError, ShapeError
from weft.nn.functional.embedding import embedding_bag
from weft.nn.layer.embedding import EmbeddingBag
from weft.nn.module.module import Module
from weft.table.bags import BagInput, DenseTable, DenseTables
from weft.table.optimizer import RowOptimizer

__all__ = ["EmbeddingBagCollection", "EmbeddingBagConfig", "KeyedJaggedTensor", "KeyedTensor"]

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


class KeyedJaggedTensor:
    """Bags of ids of several features.

    Args:
        keys: the features.
        values: the ids, those of a feature one after the other, by bag.
        lengths: how many ids each bag has, (features * bags).
        offsets: where each bag begins, and the end, instead of lengths.
        weights: what each id counts, float32, of the shape of the values; 1 by default.

    Example:
        >>> import weft as wf
        >>> bags = wf.nn.KeyedJaggedTensor(["user", "item"], [3, 5, 7, 7], lengths=[1, 1, 0, 2])
        >>> bags.bags
        2
    """

    def __init__(
        self, keys: Iterable[str], values: Any, lengths: Any = None, offsets: Any = None,
        weights: Any = None,
    ) -> None:  # fmt: skip
        self.keys: Final = list(keys)
        self.values: Final = _ids(values)
        if (lengths is None) == (offsets is None):
            raise ArgumentError.here("KeyedJaggedTensor: expected lengths or offsets")
        given = _ids(offsets if lengths is None else lengths)
        self.offsets: Final = given if lengths is None else np.append(0, np.cumsum(given))
        self.weights: Final = None if weights is None else _floats(weights)
        count, total = self.offsets.size - 1, self.values.size
        ends = (int(self.offsets[0]), int(self.offsets[-1])) if count >= 0 else (0, -1)
        if not self.keys or count % len(self.keys) or ends != (0, total):
            raise ShapeError.here(
                f"KeyedJaggedTensor: expected as many bags for each of {len(self.keys)} features, "
                f"with {total} ids in all, got {count} bags and ids {ends[0]} to {ends[1]}"
            )
        if (np.diff(self.offsets) < 0).any():
            raise ShapeError.here("KeyedJaggedTensor: expected offsets that do not fall")
        if self.weights is not None and self.weights.shape != self.values.shape:
            raise ShapeError.here(
                f"KeyedJaggedTensor: expected weights {self.values.shape}, got {self.weights.shape}"
            )

    @property
    def bags(self) -> int:
        """How many each feature has."""
        return (self.offsets.size - 1) // len(self.keys)

    def permuted(self, keys: Sequence[str]) -> KeyedJaggedTensor:
        """The same bags of these features, in this order.

        Args:
            keys: some of the features.
        """
        if list(keys) == self.keys:
            return self
        place = {key: number for number, key in enumerate(self.keys)}
        missing = [key for key in keys if key not in place]
        if missing:
            raise ArgumentError.here(
                f"KeyedJaggedTensor: expected features among {', '.join(self.keys)}, "
                f"got {missing[0]!r}"
            )
        parts = [slice(place[k] * self.bags, (place[k] + 1) * self.bags + 1) for k in keys]
        bounds = [self.offsets[part] for part in parts]
        ids = np.concatenate([self.values[b[0] : b[-1]] for b in bounds])
        lengths = np.concatenate([np.diff(b) for b in bounds])
        weights = None
        if self.weights is not None:
            weights = np.concatenate([self.weights[b[0] : b[-1]] for b in bounds])
        return KeyedJaggedTensor(keys, ids, lengths, weights=weights)

    @classmethod
    def of(cls, features: Mapping[str, Any]) -> KeyedJaggedTensor:
        """Bags by feature.

        Args:
            features: integers (bags, size), or a pair of integers (n) and offsets (bags).
        """
        values: list[Array] = []
        lengths: list[Array] = []
        for ids in features.values():
            if isinstance(ids, tuple):
                flat, starts = (_ids(x) for x in ids)
                values.append(flat)
                lengths.append(np.diff(np.append(starts, flat.size)))
            else:
                whole = _array(ids)
                if whole.ndim != 2:
                    raise ShapeError.here(
                        f"EmbeddingBagCollection: expected ids (bags, size), or (ids, offsets), "
                        f"got {whole.shape}"
                    )
                values.append(_ids(whole))
                lengths.append(np.full(whole.shape[0], whole.shape[1], np.int64))
        return cls(features, np.concatenate(values), np.concatenate(lengths))


class KeyedTensor:
    """Results by feature: columns of one tensor.

    Args:
        keys: the features.
        length_per_key: how many columns each has.
        values: (bags, columns).
    """

    def __init__(self, keys: Sequence[str], length_per_key: Sequence[int], values: Any) -> None:
        self.keys: Final = list(keys)
        self.length_per_key: Final = list(length_per_key)
        self.values: Final = values
        starts = np.append(0, np.cumsum(self.length_per_key)).tolist()
        self._columns = dict(zip(self.keys, zip(starts, starts[1:], strict=False), strict=True))

    def __getitem__(self, key: str) -> Any:
        """The columns of a feature."""
        begin, end = self._columns[key]
        return self.values[:, begin:end]

    def to_dict(self) -> dict[str, Any]:
        """The columns of each feature."""
        return {key: self[key] for key in self.keys}


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
        arrays = {name: _floats(state[name]) for name in places}
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


def _array(x: Any) -> Array:
    return np.asarray(getattr(x, "array", x))


def _ids(x: Any) -> Array:
    array = _array(x)
    if array.dtype.kind not in "iu" and array.size:
        raise ArgumentError.here(f"KeyedJaggedTensor: expected integers, got {array.dtype}")
    return np.ascontiguousarray(array.reshape(-1), np.int64)


def _floats(x: Any) -> Array:
    return np.ascontiguousarray(_array(x), np.float32)
