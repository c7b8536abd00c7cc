"""Hash tables on servers: in this process, in others, after a restart."""

import threading

import numpy as np
import pytest
from patience import LIMIT

from tests.cluster.processes import Cluster
from weft.checkpoint import Checkpointer
from weft.cluster.server import Server
from weft.cluster.shards.shards import Shards
from weft.cluster.spec import ClusterSpec
from weft.cluster.table.hash_table import HashTable, HashTables
from weft.errors import AbortedError, ArgumentError, DataError, UnavailableError
from weft.table import Adagrad, Uniform
from weft.table.embedding_table import TableOptions


@pytest.fixture
def local():
    servers = [Server(ClusterSpec({"ps": ["127.0.0.1:0"]}), "ps", 0) for _ in range(3)]
    for server in servers:
        server.start()
    yield servers
    for server in servers:
        server.stop()


def test_where_rows_are_changes_no_bit(cluster, local):
    far = [cluster.spec["ps"][0], cluster.spec["worker"][0]]
    rng = np.random.default_rng(0)
    made = [
        HashTable(f"bits{n}", 6, optimizer=Adagrad(0.3), first=Uniform(-1, 1), servers=servers)
        for n, servers in enumerate((None, far, local, [*far, local[0]]))
    ]
    for _ in range(3):
        ids = rng.integers(-30, 30, (9, 4))
        rows = [table.lookup(ids) for table in made] + [made[1].lookup(ids, unique=False)]
        for n in (0, 2, 3):  # counted as often
            made[n].lookup(ids)
        g = rng.standard_normal(rows[0].shape).astype(np.float32)
        for x in rows[1:]:
            np.testing.assert_array_equal(x, rows[0])
        assert len({table.update(ids, g) for table in made}) == 1
    states = [table.state_dict() for table in made]
    for state in states[1:]:
        for name, x in state.items():
            np.testing.assert_array_equal(x, states[0][name], err_msg=name)
    assert len({len(table) for table in made}) == 1 and made[1].nbytes > 0
    for table in made:
        table.clear()
        table.close()


def test_workers_share_a_table(cluster):
    """No update of many threads is lost."""
    servers = cluster.spec["ps"]

    def work():
        with HashTable("sums", 2, first=Uniform(-1e-9, 1e-9), servers=servers) as table:
            for _ in range(20):
                table.update(table_ids, -np.ones((5, 2)), lr=1.0)

    table_ids = np.arange(5)
    with HashTable("sums", 2, first=Uniform(-1e-9, 1e-9), servers=servers) as table:
        table.lookup(table_ids)
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        np.testing.assert_allclose(table.lookup(table_ids), 80)
        table.clear()


def test_files(tmp_path, local):
    options = {"a": TableOptions(2, Adagrad(0.1), admit=2), "b": TableOptions(1)}
    ids = {"a": [1, 2, 1], "b": [[7]]}
    with HashTables(options, local) as made:
        rows = made.lookup(ids)
        made.update(ids, rows)
        made.save(tmp_path / "tables")
        want = made.lookup(ids, insert=False)
    other = HashTables(options)
    other.restore(tmp_path / "tables")
    for name, x in other.lookup(ids, insert=False).items():
        np.testing.assert_array_equal(x, want[name])
    assert other.sizes()["a"][3] == 1
    with pytest.raises(DataError, match=r"the state has 'b\.\w+'; it is of other tables"):
        HashTables({"a": options["a"]}).restore(tmp_path / "tables")
    broken = bytearray((tmp_path / "tables").read_bytes())
    broken[-5] ^= 1
    (tmp_path / "tables").write_bytes(broken)
    with pytest.raises(DataError):
        other.restore(tmp_path / "tables")


def test_a_stopped_server_in_this_process(local):
    table = HashTable("gone", 2, servers=local)
    table.lookup([1, 2, 3, 4, 5, 6, 7, 8])
    local[1].stop()
    with pytest.raises(UnavailableError, match="is stopped"):
        table.lookup([1])
    with pytest.raises(ArgumentError, match="expected at least one server"):
        HashTable("none", 2, servers=[])


@pytest.mark.slow
def test_a_server_that_is_killed_and_comes_back(tmp_path):
    own = Cluster({"ps": 2})
    try:
        table = HashTable("t", 3, servers=ClusterSpec(own.spec))
        rows = table.lookup(np.arange(50))
        table.save(tmp_path / "rows")
        own.send("ps", 1, 9)
        own.processes["ps", 1].wait(LIMIT)
        with pytest.raises(UnavailableError, match=own.spec["ps"][1]):
            table.lookup(np.arange(50))
        own.processes["ps", 1].stdout.close()
        own.start("ps", 1)
        assert own.processes["ps", 1].stdout.readline() == "ready\n"
        with pytest.raises(AbortedError, match="has started anew and has lost its rows"):
            table.lookup(np.arange(50))
        table.restore(tmp_path / "rows")
        np.testing.assert_array_equal(table.lookup(np.arange(50), insert=False), rows)
        table.close()
    finally:
        own.stop()


def test_checkpoints_of_a_run_have_tables_and_shards(tmp_path, local):
    options = {"a": TableOptions(2, Adagrad(0.1)), "b": TableOptions(1)}
    tables, shards = HashTables(options, local), Shards(12, size=5, seed=1, epochs=2)
    taken = iter(shards)
    first = next(taken)
    rows = tables.lookup({"a": [1, 2], "b": [3]})
    with Checkpointer(tmp_path, background=False) as checkpoints:
        checkpoints.save(7, {"tables": tables, "shards": shards})
    other, rest = HashTables(options), Shards(12, size=5, seed=1, epochs=2)
    assert Checkpointer(tmp_path).restore({"tables": other, "shards": rest}).step == 7
    found = other.lookup({"a": [1, 2], "b": [3]}, insert=False)
    for name, x in found.items():
        np.testing.assert_array_equal(x, rows[name])
    again = [(shard.epoch, shard.number) for shard in rest]
    assert again[0] == (first.epoch, first.number)  # it was not done
    assert sorted(again) == [(epoch, number) for epoch in range(2) for number in range(3)]
    tables.close()
