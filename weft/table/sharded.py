"""Tables whose rows are divided by id between processes: one message to each, for all tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from weft.codegen.table.rows import SIZE
from weft.errors import ArgumentError, ShapeError
from weft.runtime.memory.address import address_of
from weft.table.embedding_table import Content, TableOptions
from weft.table.group import Gradients, Run, TableGroup, runs_of
from weft.table.grouping import Distinct, Ids, Owned, by_owner, distinct, joined, members_of
from weft.table.home import Answer, Group, Home
from weft.table.memory import empty, zeros
from weft.table.native import RowFunctions, row_functions
from weft.table.parallel import in_parts, threads_for

Array = np.ndarray[Any, Any]


class Share(NamedTuple):
    """What one process is asked for."""

    ids: Array
    bounds: Array
    seen: Array | None
    inverse: Array | None  # uint32: the row of each of its ids in the answer; `None`: in order
    order: Array | None  # uint32: where each of its ids came from; `None`: in order
    starts: Array  # where its ids of each table begin among `inverse` and `order`


class ShardedTables:
    """Tables by name in several processes. An id's process follows from its hash.

    Args:
        tables: their options by name.
        homes: the processes, in the same order for everyone.
    """

    def __init__(self, tables: Mapping[str, TableOptions], homes: Sequence[Home]) -> None:
        if not tables or not homes:
            raise ArgumentError.here("tables: expected at least one table and one server")
        self.options: Final = dict(tables)
        # Tables of one width are neighbors, so that their rows are one array
        self._order = sorted(tables, key=lambda name: tables[name].width)
        chosen = [tables[name] for name in self._order]
        self._runs = runs_of(chosen)
        self._natives = [_native(chosen[run.first]) for run in self._runs]
        records = [(name, tables[name].record()) for name in self._order]
        self._groups = [Group(home, records) for home in homes]
        for group in self._groups:
            group.open()

    def close(self) -> None:
        """Ends the connections to the processes, which keep the tables."""
        for group in self._groups:
            group.home.close()

    def lookup(
        self, ids: Mapping[str, Any], unique: bool = True, insert: bool = True
    ) -> dict[str, Array]:
        """The rows of ids of any shape, (..., width) for each table.

        Args:
            ids: int64, by table.
            unique: whether an id that occurs several times is asked for once; it is counted as
                often as it occurs.
            insert: whether ids are counted and get rows; else tables stay as they are.
        """
        names, flat = self._flat(ids, "lookup")
        outs = [
            empty((int(flat.bounds[run.last] - flat.bounds[run.first]), run.width), np.float32)
            for run in self._runs
        ]
        owned = by_owner(flat, len(self._groups))
        places = self._places(outs, flat)
        answers: list[tuple[Share, Answer]] = []
        for owner, group in self._far():
            share = self._share(owned, owner, unique)
            arrays = [share.ids, share.bounds, *([] if share.seen is None else [share.seen])]
            answers.append((share, group.start("lookup", {"insert": insert}, arrays)))

        def near(owner: int, group: TableGroup, threads: int | None) -> int:
            share = self._share(owned, owner, False)
            some = Ids(share.ids, share.bounds)
            group.lookup_into(some, None, insert, share.order, places, threads)
            return 0

        self._each_near(near, flat.ids.size)
        for share, answer in answers:
            self._received(share, answer, places)
        return self._by_name(names, ids, flat, outs)

    def update(
        self, ids: Mapping[str, Any], gradients: Mapping[str, Any],
        lr: float | Mapping[str, float] | None = None,
    ) -> int:  # fmt: skip
        """Updates rows by gradients; how many ids had a row.

        Gradients of equal ids are added up first, in their order.

        Args:
            ids: int64, of any shape, by table.
            gradients: float32, (..., width), by table.
            lr: the learning rate, or that of each table; by default the optimizers'.
        """
        _, flat = self._flat(ids, "update")
        joint = [self._gradients(run, ids, gradients) for run in self._runs]
        rates = self._rates(lr)
        owned = by_owner(flat, len(self._groups))

        places = self._places(joint, flat)
        answers: list[Answer] = []
        for owner, group in self._far():
            share = self._share(owned, owner, True)
            parts = zip(self._runs, places, self._natives, strict=True)
            sums = [self._sum(run, share, place, native) for run, place, native in parts]
            arrays = [share.ids, share.bounds, *sums]
            answers.append(group.start("update", {"rates": rates}, arrays))

        def near(owner: int, group: TableGroup, threads: int | None) -> int:
            place, bounds = owned.part(owner, len(self._order))
            some = distinct(Ids(owned.ids[place], bounds))
            order = None if owned.order is None else owned.order[place]
            lists = Gradients(places, *members_of(some, order))
            return group.update_from(Ids(some.ids, some.bounds), lists, rates, threads)

        count = self._each_near(near, flat.ids.size)
        return count + sum([int(answer.result().head["updated"]) for answer in answers])

    def drop(self, age: int) -> int:
        """Drops ids that no lookup asked for during so many updates; how many.

        Args:
            age: a number of updates.
        """
        answers = [group.start("drop", {"age": age}, []) for group in self._groups]
        return sum([sum(answer.result().head["dropped"]) for answer in answers])

    def clear(self) -> None:
        """Drops all ids."""
        for answer in [group.start("clear", {}, []) for group in self._groups]:
            answer.result()

    def sizes(self) -> dict[str, tuple[int, int, int, int]]:
        """Of each table: ids seen, ids with a row, bytes, updates."""
        answers = [group.start("sizes", {}, []) for group in self._groups]
        every = np.array([answer.result().head["sizes"] for answer in answers], np.int64)
        found: dict[str, tuple[int, int, int, int]] = {}
        for number, name in enumerate(self._order):
            seen, rows, size = every[:, number, :3].sum(0).tolist()
            found[name] = seen, rows, size, int(every[:, number, 3].max())
        return found

    def export(self, name: str) -> tuple[Content, int]:
        """What a table has, ids ascending, and its number of updates.

        Args:
            name: of the table.
        """
        head = {"table": self._order.index(name)}
        answers = [group.start("export", head, []) for group in self._groups]
        replies = [answer.result() for answer in answers]
        parts = zip(*[reply.arrays for reply in replies], strict=True)
        whole = [np.concatenate(part) for part in parts]
        order = np.argsort(whole[0], kind="stable")
        updates = max([int(reply.head["updates"]) for reply in replies])
        return Content(*[x[order] for x in whole]), updates

    def load(self, name: str, content: Content, updates: int) -> None:
        """Replaces what a table has.

        Args:
            name: of the table.
            content: as `export` gives it, of any number of processes.
            updates: the number of updates that the table has had.
        """
        table = self._order.index(name)
        ids = Ids(np.ascontiguousarray(content.ids, np.int64), np.array([0, content.ids.size]))
        owned = by_owner(ids, len(self._groups))
        answers: list[Answer] = []
        for owner, group in enumerate(self._groups):
            place, _ = owned.part(owner, 1)
            rows = slice(None) if owned.order is None else owned.order[place]
            arrays = [np.ascontiguousarray(x[rows]) for x in content]
            answers.append(group.start("load", {"table": table, "updates": updates}, arrays))
        for answer in answers:
            answer.result()

    def _flat(self, ids: Mapping[str, Any], what: str) -> tuple[list[str], Ids]:
        unknown = sorted(set(ids) - set(self.options))
        if unknown:
            raise ArgumentError.here(
                f"tables: expected names among {', '.join(self.options)}, got {unknown[0]!r}"
            )
        names = [name for name in self._order if name in ids]
        none = empty(0, np.int64)
        return names, joined([ids.get(name, none) for name in self._order], f"tables: {what}")

    def _share(self, owned: Owned, owner: int, unique: bool) -> Share:
        return _share(owned, owner, len(self._order), unique)

    def _places(self, arrays: Sequence[Array], flat: Ids) -> list[int]:
        """Where the first row of all tables would be: positions count from the first table's ids,
        arrays from those of their run.
        """
        return [
            address_of(x) - SIZE * run.width * int(flat.bounds[run.first])
            for run, x in zip(self._runs, arrays, strict=True)
        ]

    def _far(self) -> list[tuple[int, Group]]:
        """The processes that take messages, with their numbers."""
        return [(n, group) for n, group in enumerate(self._groups) if group.home.near is None]

    def _each_near(self, work: Callable[[int, TableGroup, int | None], int], size: int) -> int:
        """Does some work on the tables in this process; the sum of its results."""
        near = [(n, found) for n, group in enumerate(self._groups) if (found := group.near)]
        if len(near) < 2:
            return sum([work(owner, group, None) for owner, group in near])
        counts: list[int] = []

        def part(begin: int, end: int) -> None:
            for owner, group in near[begin:end]:
                counts.append(work(owner, group, 1))

        in_parts(part, len(near), min(len(near), threads_for(size)))
        return sum(counts)

    def _received(self, share: Share, answer: Answer, places: list[int]) -> None:
        """Puts an answer's rows in their places."""
        rows = answer.result().arrays
        for run, target, part, native in zip(self._runs, places, rows, self._natives, strict=True):
            row = SIZE * run.width
            begin, count = _range(share, run)
            source = address_of(part) - row * int(share.bounds[run.first])
            inverse, order = _from(share.inverse, begin), _from(share.order, begin)
            if inverse is None:
                source += row * begin
            if order is None:
                target += row * begin
            native.spread(source, inverse, order, count, target)

    def _sum(self, run: Run, share: Share, source: int, native: RowFunctions) -> Array:
        """The sums of a run's gradients of equal ids."""
        count = int(share.bounds[run.last] - share.bounds[run.first])
        out, row = zeros((count, run.width), np.float32), SIZE * run.width
        begin, size = _range(share, run)
        if share.order is None:
            source += row * begin
        target = address_of(out) - row * int(share.bounds[run.first])
        inverse, order = _from(share.inverse, begin), _from(share.order, begin)
        native.total(source, inverse, order, size, target)
        return out

    def _gradients(self, run: Run, ids: Mapping[str, Any], gradients: Mapping[str, Any]) -> Array:
        parts: list[Array] = []
        for name in self._order[run.first : run.last]:
            if name not in ids:
                continue
            shape = (*np.shape(ids[name]), run.width)
            g = np.asarray(gradients[name], np.float32)
            if g.shape != shape:
                raise ShapeError.here(
                    f"table {name!r}: expected gradients {shape} of ids {shape[:-1]}, got {g.shape}"
                )
            parts.append(g.reshape(-1, run.width))
        if len(parts) == 1:
            return np.ascontiguousarray(parts[0])
        return np.concatenate(parts) if parts else empty((0, run.width), np.float32)

    def _rates(self, lr: float | Mapping[str, float] | None) -> Sequence[float | None] | None:
        if lr is None:
            return None
        if isinstance(lr, Mapping):
            return [lr.get(name) for name in self._order]
        return [float(lr)] * len(self._order)

    def _by_name(
        self, names: list[str], ids: Mapping[str, Any], flat: Ids, outs: list[Array]
    ) -> dict[str, Array]:
        found: dict[str, Array] = {}
        for run, out in zip(self._runs, outs, strict=True):
            start = int(flat.bounds[run.first])
            for number in range(run.first, run.last):
                name = self._order[number]
                if name in ids:
                    begin, end = flat.bounds[number] - start, flat.bounds[number + 1] - start
                    found[name] = out[begin:end].reshape(*np.shape(ids[name]), run.width)
        return {name: found[name] for name in ids}


def _native(options: TableOptions) -> RowFunctions:
    return row_functions(options.width, options.optimizer, options.first)


def _share(owned: Owned, owner: int, tables: int, unique: bool) -> Share:
    place, bounds = owned.part(owner, tables)
    ids = owned.ids[place]
    order = None if owned.order is None else owned.order[place]
    if not unique:
        return Share(ids, bounds, None, None, order, bounds)
    some: Distinct = distinct(Ids(ids, bounds))
    return Share(some.ids, some.bounds, some.seen, some.inverse, order, bounds)


def _range(share: Share, run: Run) -> tuple[int, int]:
    begin = int(share.starts[run.first])
    return begin, int(share.starts[run.last]) - begin


def _from(places: Array | None, begin: int) -> int | None:
    return None if places is None else address_of(places) + 4 * begin
