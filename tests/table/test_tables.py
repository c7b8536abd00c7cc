"""Tables of rows by id: rows made on first sight, updates, expiry, what is saved."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import ArgumentError, DTypeError, ExistsError, ShapeError
from weft.table import FTRL, SGD, Adagrad, Adam, Constant, Normal, TruncatedNormal, Uniform
from weft.table.embedding_table import Content, EmbeddingTable, TableOptions
from weft.table.group import TableGroup
from weft.table.grouping import Ids, by_owner, distinct, joined
from weft.table.home import HomeHere
from weft.table.host import TableHost
from weft.table.sharded import ShardedTables

OPTIMIZERS = [SGD(0.1), Adagrad(0.1), Adam(0.01), FTRL(0.1, l1=0.01, l2=0.1)]
WIDTHS = [1, 3, 16, 20, 200]


def tables(options, homes=1, threads=None):
    return ShardedTables(options, [HomeHere(TableHost(threads)) for _ in range(homes)])


def of_one(**options):
    return tables({"t": TableOptions(**{"width": 4, **options})})


def wanted(optimizer, p, g, slots, step):
    """One update of all rows, in float64."""
    p, g, slots = p.astype(np.float64), g.astype(np.float64), [s.astype(np.float64) for s in slots]
    lr = optimizer.lr
    if isinstance(optimizer, SGD):
        return p - lr * g, []
    if isinstance(optimizer, Adagrad):
        total = slots[0] + g * g
        return p - lr * g / (np.sqrt(total) + optimizer.eps), [total]
    if isinstance(optimizer, Adam):
        b1, b2 = optimizer.betas
        m, v = slots[0] * b1 + g * (1 - b1), slots[1] * b2 + g * g * (1 - b2)
        rate = lr * np.sqrt(1 - b2**step) / (1 - b1**step)
        return p - rate * m / (np.sqrt(v) + optimizer.eps), [m, v]
    n, z = slots[0] + g * g, slots[1]
    z = z + g - (np.sqrt(n) - np.sqrt(slots[0])) / lr * p
    moved = (np.sign(z) * optimizer.l1 - z) / (np.sqrt(n) / lr + 2 * optimizer.l2)
    return np.where(np.abs(z) > optimizer.l1, moved, 0), [n, z]


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda x: type(x).__name__)
@pytest.mark.parametrize("width", WIDTHS)
def test_rules(optimizer, width):
    rng = np.random.default_rng(width)
    made = tables({"t": TableOptions(width, optimizer, Normal(std=1.0))}, 2)
    ids = np.arange(7)
    p = made.lookup({"t": ids})["t"]
    slots = [np.full((7, width), x) for x in optimizer.beginnings()]
    for step in (1, 2, 3):
        g = rng.standard_normal((7, width)).astype(np.float32)
        assert made.update({"t": ids}, {"t": g}) == 7
        p, slots = wanted(optimizer, p, g, slots, step)
    content, updates = made.export("t")
    np.testing.assert_allclose(content.rows, p, rtol=1e-4, atol=1e-5)
    for number, slot in enumerate(slots):
        np.testing.assert_allclose(content.slots[:, number], slot, rtol=1e-4, atol=1e-5)
    assert updates == 3


@given(
    st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 5), max_size=60),
    st.integers(1, 5), st.booleans(), st.integers(1, 3),
)  # fmt: skip
def test_servers_threads_and_repeats_change_no_bit(ids, homes, unique, threads):
    """Against one home, one thread, and a Python dict of what was summed."""
    options = {"a": TableOptions(5, Adagrad(0.5), seed=3), "b": TableOptions(16, SGD(0.1))}
    one, many = tables(options, 1, 1), tables(options, homes, threads)
    asked = {"b": np.array(ids, np.int64), "a": np.array(ids[::2], np.int64).reshape(1, -1)}
    rng = np.random.default_rng(len(ids))
    for _ in range(2):
        x, y = one.lookup(asked, True), many.lookup(asked, unique)
        g = {name: rng.standard_normal(x[name].shape).astype(np.float32) for name in asked}
        for name, i in asked.items():
            assert x[name].shape == (*i.shape, options[name].width)
            np.testing.assert_array_equal(x[name], y[name])
        expected = sum(len(np.unique(i)) for i in asked.values())
        assert one.update(asked, g) == many.update(asked, g) == expected
    for name in options:
        for x, y in zip(one.export(name)[0], many.export(name)[0], strict=True):
            np.testing.assert_array_equal(x, y)
    sums: dict[int, np.ndarray] = {}
    before = one.export("b")[0]
    for i, row in zip(asked["b"].tolist(), g["b"], strict=True):
        sums[i] = sums.get(i, np.zeros(16, np.float32)) + row
    one.update({"b": asked["b"]}, {"b": g["b"]})
    for i, old, new in zip(before.ids.tolist(), before.rows, one.export("b")[0].rows, strict=True):
        np.testing.assert_array_equal(new, old - np.float32(0.1) * sums[i])


def test_the_order_of_first_sight_does_not_matter():
    ids = np.random.default_rng(0).integers(-(2**62), 2**62, 5000)
    x = of_one(first=Uniform(-2, 3)).lookup({"t": ids})["t"]
    y = of_one(first=Uniform(-2, 3)).lookup({"t": ids[::-1]})["t"][::-1]
    z = of_one(first=Uniform(-2, 3), seed=1).lookup({"t": ids})["t"]
    np.testing.assert_array_equal(x, y)
    assert (x != z).mean() > 0.999
    assert len(np.unique(x)) > 0.99 * x.size  # 24 bits
    assert -2 <= x.min() < -1.99 and 2.99 < x.max() < 3
    for bits in (0, 5, 31):  # neighbors, and ids that differ in one bit, are unlike
        other = of_one(first=Uniform(-2, 3)).lookup({"t": ids ^ (1 << bits)})["t"]
        assert abs(np.corrcoef(x.ravel(), other.ravel())[0, 1]) < 0.03
    assert abs(np.corrcoef(x[:, 0], x[:, 1])[0, 1]) < 0.06


@pytest.mark.parametrize(
    ("first", "mean", "std", "most"),
    [
        (Uniform(0, 1), 0.5, 12**-0.5, 1), (Normal(1, 2), 1, 2, 12),
        (TruncatedNormal(0, 1), 0, 0.8796, 2), (Constant(3), 3, 0, 3),
    ],
)  # fmt: skip
def test_first_rows(first, mean, std, most):
    x = of_one(first=first).lookup({"t": np.arange(20000)})["t"]
    assert abs(x.mean() - mean) < 0.02 and abs(x.std() - std) < 0.02 and x.max() <= most


def test_admission_counts_what_is_seen():
    made = of_one(admit=3, first=Constant(1.0), width=2)
    for asked, rows in (([5, 5, 6], 0), ([5, 7], 1), ([7, 7], 2), ([6], 2)):
        made.lookup({"t": asked})
        assert made.sizes()["t"][:2] == (len({5, 6, 7} & {5, 6, *([7] if rows else [])}), rows)
    x = made.lookup({"t": [5, 6, 7, 8]}, insert=False)["t"]
    assert x[:, 0].tolist() == [1, 0, 1, 0]
    assert made.update({"t": [5, 6, 9]}, {"t": np.ones((3, 2))}, lr=1.0) == 1
    assert made.lookup({"t": [5, 6]}, insert=False)["t"].tolist() == [[0, 0], [0, 0]]
    assert made.sizes()["t"][0] == 3  # neither counted nor made what was only read


def test_expiry_gives_rows_back():
    made = of_one(expire=4, first=Constant(1.0))
    made.lookup({"t": np.arange(1000)})
    for _ in range(4):
        made.lookup({"t": [1, 2]})
        made.update({"t": [1, 2]}, {"t": np.ones((2, 4))}, lr=0.5)
    assert made.sizes()["t"][0] == 1000
    made.lookup({"t": [1, 2]})
    made.update({"t": [1, 2]}, {"t": np.ones((2, 4))}, lr=0.5)
    assert made.sizes()["t"][:2] == (2, 2)
    fresh = made.lookup({"t": np.arange(1000)})["t"]  # in the memory of dropped ones
    assert (fresh[[0, 3, 999]] == 1).all() and fresh[1, 0] == -1.5
    assert made.drop(100) == 0


@pytest.mark.parametrize("homes", [1, 3])
def test_what_is_saved_is_restored_on_any_number_of_homes(homes):
    options = {"t": TableOptions(3, Adam(0.1), admit=2)}
    made, other = tables(options, 2), tables(options, homes)
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 50, 80)
    made.lookup({"t": ids})
    made.update({"t": ids}, {"t": rng.standard_normal((80, 3))})
    other.lookup({"t": [1000]})  # is gone afterwards
    other.load("t", *made.export("t"))
    for _ in range(3):
        again = rng.integers(0, 60, 40)
        g = rng.standard_normal((40, 3)).astype(np.float32)
        np.testing.assert_array_equal(
            made.lookup({"t": again})["t"], other.lookup({"t": again})["t"]
        )
        assert made.update({"t": again}, {"t": g}) == other.update({"t": again}, {"t": g})
    x, y = made.export("t"), other.export("t")
    for a, b in zip(x[0], y[0], strict=True):
        np.testing.assert_array_equal(a, b)
    assert x[1] == y[1] == 4 and not x[0].admitted.all()


def test_many_ids_against_a_dict():
    """Growth of every part, and of the rows' memory."""
    table = EmbeddingTable(TableOptions(2, SGD(1.0), Constant(0.0)))
    group = TableGroup([table], threading.Lock(), 2)
    rng = np.random.default_rng(2)
    known: dict[int, int] = {}
    for size in (10, 1000, 200_000):
        ids = np.unique(rng.integers(0, 10 * size, size))
        whole = joined([ids], "test")
        (rows,) = group.lookup(whole)
        assert rows[:, 0].tolist() == [known.get(i, 0) for i in ids.tolist()]
        g = np.repeat(-np.arange(ids.size, dtype=np.float32)[:, None] - 1, 2, 1)
        group.update(whole, [g])
        known.update({i: known.get(i, 0) + n + 1 for n, i in enumerate(ids.tolist())})
    assert len(table) == table.rows == len(known)
    content = table.export()
    assert content.ids.tolist() == sorted(known)
    used = len(known) * (table.native.form.row_bytes + 32)
    assert table.nbytes < 5 * used
    table.clear()
    assert len(table) == 0 and table.export().ids.size == 0


def test_grouping():
    rng = np.random.default_rng(3)
    lists = [rng.integers(-5, 5, n) for n in (30, 0, 17)]
    ids = joined(lists, "test")
    some = distinct(ids)
    for number, one in enumerate(lists):
        begin, end = some.bounds[number : number + 2]
        firsts = list(dict.fromkeys(one.tolist()))
        assert some.ids[begin:end].tolist() == firsts
        assert some.seen[begin:end].tolist() == [one.tolist().count(i) for i in firsts]
    np.testing.assert_array_equal(some.ids[some.inverse], ids.ids)
    owned = by_owner(Ids(rng.integers(-(2**62), 2**62, 9000), np.array([0, 9000])), 9)
    assert np.diff(owned.starts).min() > 850 and np.diff(owned.starts).max() < 1150


@pytest.mark.parametrize(
    ("method", "arrays"),
    [
        ("lookup", []),
        ("lookup", [np.arange(3)]),
        ("lookup", [np.arange(3), np.array([0, 4])]),
        ("lookup", [np.arange(3), np.array([1, 3])]),
        ("lookup", [np.arange(3), np.array([0, 5, 3])]),
        ("lookup", [np.arange(3.0), np.array([0, 3])]),
        ("lookup", [np.arange(3, dtype=np.int32), np.array([0, 3])]),
        ("lookup", [np.arange(3).reshape(3, 1), np.array([0, 3])]),
        ("lookup", [np.arange(3), np.array([0, 3]), np.ones(2, np.int64)]),
        ("lookup", [np.arange(3), np.array([0, 3]), np.zeros(3, np.int64)]),
        ("update", [np.arange(3), np.array([0, 3])]),
        ("update", [np.arange(3), np.array([0, 3]), np.ones((3, 5), np.float32)]),
        ("update", [np.arange(3), np.array([0, 3]), np.ones((3, 4))]),
        ("load", [np.arange(3)] * 6),
    ],
)
def test_malformed_messages_are_refused(method, arrays):
    """A server gets them from whoever connects; native code must not see them."""
    host = TableHost()
    group = host.open([("t", TableOptions(4).record())])
    head = {"group": group, "insert": True, "rates": None, "table": 0, "updates": 0}
    with pytest.raises((ShapeError, ArgumentError, TypeError)):
        host.call(method, head, arrays)
    rows = host.call("lookup", head, [np.arange(3), np.array([0, 3])]).arrays[0]
    assert rows.shape == (3, 4)


def test_what_is_refused():
    made = of_one()
    with pytest.raises(DTypeError, match=r"tables: lookup: expected ids of integers, got float64"):
        made.lookup({"t": [0.5]})
    with pytest.raises(ArgumentError, match="expected names among t, got 'x'"):
        made.lookup({"x": [1]})
    with pytest.raises(ShapeError, match=r"table 't': expected gradients \(2, 4\) of ids \(2,\)"):
        made.update({"t": [1, 2]}, {"t": np.ones((2, 3))})
    with pytest.raises(ArgumentError, match="expected width of at least 1, got 0"):
        TableOptions(0)
    with pytest.raises(ArgumentError, match="expected a width of at most 1024, got 5000"):
        TableOptions(5000)
    with pytest.raises(ArgumentError, match="Adam: expected betas"):
        Adam(betas=(0.9, 1.0))
    with pytest.raises(ArgumentError, match="Uniform: expected low < high"):
        Uniform(1, 1)
    host = TableHost()
    ShardedTables({"t": TableOptions(4)}, [HomeHere(host)])
    with pytest.raises(ExistsError, match="table 't': it exists with other options"):
        ShardedTables({"t": TableOptions(4, seed=1)}, [HomeHere(host)])
    content = made.export("t")[0]
    bad = Content(*[np.zeros((1, 4)) if x is content.rows else x for x in content])
    with pytest.raises(ShapeError, match=r"expected rows \(0, 4\), got \(1, 4\)"):
        made.load("t", bad, 0)
