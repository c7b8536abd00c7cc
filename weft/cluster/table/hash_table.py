"""`HashTable`, `HashTables`: variables that are hash tables, in this process or on servers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from weft.cluster.rpc import RpcOptions
from weft.cluster.server import Server, server_at
from weft.cluster.spec import ClusterSpec
from weft.cluster.table.remote import RemoteHome
from weft.documentation import arguments_of
from weft.errors import ArgumentError, DataError
from weft.formats.safetensors import read_arrays, write_arrays
from weft.table.embedding_table import Content, TableOptions
from weft.table.first_row import FirstRow, Uniform
from weft.table.home import Home, HomeHere
from weft.table.host import TableHost
from weft.table.optimizer import SGD, RowOptimizer
from weft.table.sharded import ShardedTables

__all__ = ["HashTable", "HashTables"]

Array = np.ndarray[Any, Any]
Servers = ClusterSpec | Sequence[str | Server] | None
_UPDATES: Final = "updates"


class HashTables:
    """Several hash tables, of which a call asks each server once.

    Args:
        tables: what they are, by name: all processes that use a table name it alike.
        servers: where the rows are: addresses or `Server`s, in the same order for everyone, or a
            cluster whose job `ps` they are; this process by default.
        options: of the connections.

    Example:
        >>> from weft.table.embedding_table import TableOptions
        >>> tables = HashTables({"user": TableOptions(4), "item": TableOptions(2)})
        >>> rows = tables.lookup({"user": [7, 9, 7], "item": [[1, 2]]})
        >>> rows["user"].shape, rows["item"].shape
        ((3, 4), (1, 2, 2))
        >>> tables.update({"user": [7]}, {"user": rows["user"][:1]}, lr=1.0)
        1
        >>> tables.lookup({"user": [7]})["user"].tolist()
        [[0.0, 0.0, 0.0, 0.0]]
    """

    def __init__(
        self, tables: Mapping[str, TableOptions], servers: Servers = None,
        options: RpcOptions | None = None,
    ) -> None:  # fmt: skip
        self._rows = ShardedTables(tables, _homes(servers, options or RpcOptions()))

    @property
    def tables(self) -> dict[str, TableOptions]:
        """What they are, by name."""
        return dict(self._rows.options)

    def lookup(
        self, ids: Mapping[str, Any], unique: bool = True, insert: bool = True
    ) -> dict[str, Array]:
        """The rows of ids by table: float32, (..., width) for ids of shape (...).

        Args:
            ids: integers of any shape, by table; tables may be left out.
            unique: whether an id that occurs several times is sent once; it is counted as often as
                it occurs.
            insert: whether ids are counted, and get rows when they are seen first; else tables stay
                as they are, and missing rows are zeros.

        Raises:
            UnavailableError: a server does not answer; the error names it.
            AbortedError: a server has started anew and lost its rows.
        """
        return self._rows.lookup(ids, unique, insert)

    @arguments_of(lookup)
    def update(
        self, ids: Mapping[str, Any], gradients: Mapping[str, Any],
        lr: float | Mapping[str, float] | None = None,
    ) -> int:  # fmt: skip
        """Updates rows by gradients, those of equal ids summed up in their order.

        Args:
            gradients: float32, of the shape that `lookup` gives, by table.
            lr: the learning rate, or those by table; by default the optimizers'.

        Returns:
            How many ids had a row; gradients of others are dropped.
        """
        return self._rows.update(ids, gradients, lr)

    def drop(self, age: int) -> int:
        """Drops ids that were not looked up for so many updates.

        Args:
            age: a number of updates.

        Returns:
            How many.
        """
        return self._rows.drop(age)

    def clear(self) -> None:
        """Drops all ids."""
        self._rows.clear()

    def sizes(self) -> dict[str, tuple[int, int, int, int]]:
        """Of each table: ids seen, ids with a row, bytes of memory, updates."""
        return self._rows.sizes()

    def state_dict(self) -> dict[str, Any]:
        """All rows with the optimizers' state, ids ascending: `table.ids`, `table.rows`, ..."""
        state: dict[str, Any] = {}
        for name in self._rows.options:
            content, updates = self._rows.export(name)
            parts = {**content._asdict(), _UPDATES: updates}
            state.update({f"{name}.{part}": x for part, x in parts.items()})
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Replaces all rows, whatever the number of servers was when they were saved.

        Args:
            state: of `state_dict`.

        Raises:
            DataError: it is not of these tables.
        """
        known = {f"{n}.{p}" for n in self._rows.options for p in (*Content._fields, _UPDATES)}
        if known != set(state):
            wrong = sorted(known ^ set(state))[0]
            fault = "lacks" if wrong in known else "has"
            raise DataError(f"hash tables: the state {fault} {wrong!r}; it is of other tables")
        for name in self._rows.options:
            parts = [np.asarray(state[f"{name}.{part}"]) for part in Content._fields]
            self._rows.load(name, Content(*parts), int(state[f"{name}.{_UPDATES}"]))

    def save(self, path: str | Path) -> None:
        """Writes all rows to a file, whole or not at all.

        Args:
            path: a safetensors file.
        """
        state = self.state_dict().items()
        write_arrays(Path(path), {name: np.asarray(x) for name, x in state})

    @arguments_of(save)
    def restore(self, path: str | Path) -> None:
        """Replaces all rows by those of a file.

        Raises:
            DataError: the file is damaged, or of other tables.
        """
        self.load_state_dict(read_arrays(Path(path))[0])

    def close(self) -> None:
        """Ends the connections; servers keep the tables."""
        self._rows.close()

    def __enter__(self) -> HashTables:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class HashTable:
    """A variable that is a hash table: rows by id, made when an id is seen first.

    What a row contains follows from its id and the seed, and updates are the same bits for any
    number of threads and servers.

    Args:
        name: all processes that use the table name it alike.
        width: numbers of a row.
        optimizer: how rows are updated: `weft.table.SGD`, `Adagrad`, `Adam` or `FTRL`.
        first: what rows contain at first: `weft.table.Uniform`, `Normal`, `TruncatedNormal` or
            `Constant`.
        seed: of random first rows.
        admit: how often an id must be looked up before it gets a row; until then its row is zeros,
            and its gradients are dropped.
        expire: ids that were not looked up for so many updates are dropped; 0 for never.
        servers: see `HashTables`.
        options: of the connections.

    Example:
        >>> table = HashTable("users", 2)
        >>> table.lookup([1 << 40, -3]).shape, len(table)
        ((2, 2), 2)
    """

    def __init__(
        self, name: str, width: int, *, optimizer: RowOptimizer | None = None,
        first: FirstRow | None = None, seed: int = 0, admit: int = 1, expire: int = 0,
        servers: Servers = None, options: RpcOptions | None = None,
    ) -> None:  # fmt: skip
        self.name: Final = name
        self.options: Final = TableOptions(
            width, optimizer or SGD(), first or Uniform(), seed, admit, expire
        )
        self._tables = HashTables({name: self.options}, servers, options)

    def __len__(self) -> int:
        """How many ids have been seen, those without a row included."""
        return self._tables.sizes()[self.name][0]

    @property
    def rows(self) -> int:
        """How many ids have a row."""
        return self._tables.sizes()[self.name][1]

    @property
    def nbytes(self) -> int:
        """The memory of the index and the rows."""
        return self._tables.sizes()[self.name][2]

    def lookup(self, ids: Any, unique: bool = True, insert: bool = True) -> Array:
        """The rows of ids: float32, (..., width) for ids of shape (...).

        Args:
            ids: integers of any shape.
            unique: see `HashTables.lookup`.
            insert: see `HashTables.lookup`.
        """
        return self._tables.lookup({self.name: ids}, unique, insert)[self.name]

    @arguments_of(lookup)
    def update(self, ids: Any, gradients: Any, lr: float | None = None) -> int:
        """Updates rows by gradients, those of equal ids summed up in their order.

        Args:
            gradients: float32, (..., width).
            lr: the learning rate, by default the optimizer's.

        Returns:
            How many ids had a row; gradients of others are dropped.
        """
        return self._tables.update({self.name: ids}, {self.name: gradients}, lr)

    @arguments_of(HashTables.drop)
    def drop(self, age: int) -> int:
        """Drops ids that were not looked up for so many updates; how many."""
        return self._tables.drop(age)

    def clear(self) -> None:
        """Drops all ids."""
        self._tables.clear()

    def state_dict(self) -> dict[str, Any]:
        """All rows with the optimizer's state, ids ascending."""
        start = len(self.name) + 1
        return {name[start:]: x for name, x in self._tables.state_dict().items()}

    @arguments_of(HashTables.load_state_dict)
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Replaces all rows."""
        self._tables.load_state_dict({f"{self.name}.{name}": x for name, x in state.items()})

    @arguments_of(HashTables.save)
    def save(self, path: str | Path) -> None:
        """Writes all rows to a file, whole or not at all."""
        self._tables.save(path)

    @arguments_of(HashTables.save)
    def restore(self, path: str | Path) -> None:
        """Replaces all rows by those of a file."""
        self._tables.restore(path)

    def close(self) -> None:
        """Ends the connections; servers keep the table."""
        self._tables.close()

    def __enter__(self) -> HashTable:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _homes(servers: Servers, options: RpcOptions) -> list[Home]:
    if servers is None:
        return [HomeHere(TableHost())]
    if isinstance(servers, ClusterSpec):
        servers = [address for task, address in servers if task.job == "ps"]
    if not servers:
        raise ArgumentError.here("hash table: expected at least one server, got none")
    return [_home(server, options) for server in servers]


def _home(server: str | Server, options: RpcOptions) -> Home:
    found = server_at(f"grpc://{server}") if isinstance(server, str) else server
    if found is not None:  # in this process
        return HomeHere(found.tables, found.check_running, found.task)
    assert isinstance(server, str)
    return RemoteHome(server, options)
