"""A program for many sizes equals the references for all sizes that its guards admit."""

from __future__ import annotations

import ctypes
import itertools
import mmap
from types import SimpleNamespace

import numpy as np
import pytest

import weft as wf
from weft import config, nn
from weft.eager.record import dynamic_shape as sizes
from weft.eager.record import prepared_program as programs
from weft.eager.record.dynamic_program import DynamicProgram, perturbed
from weft.eager.record.dynamic_shape import Family
from weft.errors import CompileError, OutOfRangeError
from weft.ir.dtype import float32, int64
from weft.ir.graph import Graph
from weft.nn import functional as F
from weft.ops.declaration import catalogue as op
from weft.passes.pipeline import optimize
from weft.passes.sized import sized
from weft.passes.specialize import specialize
from weft.passes.step import Request, storing
from weft.runtime import executable, flight
from weft.runtime.execution.team import TEAM, Team
from weft.transform.gradient import dense, gradients
from weft.transform.interpretation import Interpretation
from weft.transform.resize import UnfitError

pytestmark = pytest.mark.usefixtures("unstitched")

PROBES = (3, 72, 155)
SHORT = (3, 11, 23)  # below what fills a band of attention or some tiles
WIDTH = 24
PAGE = mmap.PAGESIZE


def _guarded(array):
    """A copy at the end of mapped memory: reading or writing beyond it ends the process."""
    pages = -(-max(array.nbytes, 1) // PAGE)
    memory = mmap.mmap(-1, (pages + 1) * PAGE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(ctypes.c_void_p(start + pages * PAGE), ctypes.c_size_t(PAGE), 0) == 0
    found = np.frombuffer(memory, array.dtype, array.size, pages * PAGE - array.nbytes)
    found = found.reshape(array.shape)
    found[...] = array
    return found


def _graph(build, n):
    graph = Graph()
    with graph.as_default():
        x = op.placeholder(dtype=float32, shape=(3, n, WIDTH))
        w = op.placeholder(dtype=float32, shape=(WIDTH, 40))
        ids = op.placeholder(dtype=int64, shape=(3, n))
        return graph, build(x, w, ids, n), [x, w, ids]


def _general(build, threads=2, probes=PROBES):
    samples = []
    for n in probes:
        graph, outputs, feeds = _graph(build, n)
        step = specialize(
            Request(graph, tuple(outputs), (), tuple(feeds)), [f.type for f in feeds], {}, {}
        )
        keys = tuple([f"out{i}" for i in range(len(outputs))])
        samples.append(((3, n), optimize(storing(step, keys, {}))))
    return DynamicProgram(samples, threads)


def _feeds(n):
    rng = np.random.default_rng(n)
    return [
        rng.normal(size=(3, n, WIDTH)).astype(np.float32),
        0.2 * rng.normal(size=(WIDTH, 40)).astype(np.float32),
        rng.integers(0, WIDTH, (3, n)),
    ]


def _types(n):
    return [f.type for f in _graph(_rows, n)[2]]


def _results(general, case, arrays):
    memories = {f"out{i}": _guarded(np.zeros(*kind)) for i, kind in enumerate(case.types)}
    general.run(case, [_guarded(x) for x in arrays], memories)
    return list(memories.values())


def _check(build, sizes, least, probes=PROBES):
    general, alone = _general(build, 2, probes), _general(build, 1, probes)
    admitted = 0
    for n in sizes:
        case = general.at((3, n), _types(n))
        if case is None:
            continue
        admitted += 1
        graph, outputs, feeds = _graph(build, n)
        wanted = Interpretation(graph, outputs, feeds)(_feeds(n))
        found = _results(general, case, _feeds(n))
        same = _results(alone, alone.at((3, n), _types(n)), _feeds(n))
        for want, got, again in zip(wanted, found, same, strict=True):
            scale = np.abs(want).max(initial=1e-6)
            np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-5 * scale, err_msg=str(n))
            assert got.tobytes() == again.tobytes(), n
    assert admitted >= least


def _rows(x, w, ids, n):
    y = op.matmul(x, w)
    top = op.max(y, axes=(-1,), keepdims=True)
    e = op.exp(y - top)
    return [op.relu(y), e / op.sum(e, axes=(-1,), keepdims=True), op.gather(w, ids)]


def _sums(x, w, ids, n):
    flat = op.reshape(x, shape=(3 * n, WIDTH))
    return [op.sum(flat, axes=(0,)), op.mean(x, axes=(1,)), op.matmul(flat, flat, transpose_x=True)]


def _squares(x, w, ids, n):
    heads = op.transpose(op.reshape(x, shape=(3, n, 3, 8)), perm=(0, 2, 1, 3))
    scores = op.matmul(heads, heads, transpose_y=True)
    return [scores, op.transpose(op.matmul(scores, heads), perm=(0, 2, 1, 3))]


def _moves(x, w, ids, n):
    both = op.concatenate(x, x * 2, axis=1)
    return [both, op.transpose(x, perm=(2, 0, 1)), op.sum(both, axes=(2,))]


def _orders(x, w, ids, n):
    places = op.iota(shape=(1, n + 1), axis=1, dtype=float32)
    longer = op.concatenate(op.iota(shape=(1, n), axis=1, dtype=float32), places[:, :1], axis=1)
    return [longer * places, places * 2.0]


def _counts(x, w, ids, n):
    """Whole numbers in order, which are a constant where they are few."""
    return [ids * op.iota(shape=(3, n), axis=1, dtype=int64), x + 1.0]


def _places(x, w, ids, n):
    """Writes at a position that depends on sizes, in arrays of one size, as in text generation."""
    room = op.exp(op.iota(shape=(200, 2), axis=0, dtype=float32) * 1e-3)
    row = op.reshape(w[0, :2], shape=(1, 2))
    turned = op.transpose(op.slice_update(room, row, begin=(n, 0), end=(n + 1, 2)), perm=(1, 0))
    return [op.slice_update(turned, row[:, :1], begin=(1, n), end=(2, n + 1)), x + 1.0]


def _slopes(x, w, ids, n):
    """A block of a transformer over words that are looked up, and its gradients."""
    h = op.gather(op.matmul(w, w, transpose_y=True), ids) + x
    q, k = op.reshape(h, shape=(3, n, 1, WIDTH)), op.reshape(x, shape=(3, n, 1, WIDTH))
    q, k = op.transpose(q, perm=(0, 2, 1, 3)), op.transpose(k, perm=(0, 2, 1, 3))
    y = h + op.reshape(op.attention(q, k, q), shape=(3, n, WIDTH))
    loss = op.sum(op.square(op.tanh(op.matmul(y, w))))
    return [loss, *[dense(g) for g in gradients([loss], [x, w])]]


SIZES = [2, 3, 7, 16, 17, 24, 28, 29, 32, 33, 40, 53, 63, 64, 65, 72, 96, 127, 128, 154, 155, 156]


@pytest.mark.parametrize(
    ("build", "least"),
    [
        (_rows, 6),
        (_sums, 6),
        (_squares, 3),
        (_moves, 6),
        (_orders, 3),
        (_places, 6),
        (_slopes, 6),
    ],
)
def test_every_size_that_is_admitted_is_right(build, least):
    _check(build, SIZES, least)


@pytest.mark.parametrize("build", [_rows, _sums, _squares, _moves, _orders, _slopes])
def test_short_sizes_that_are_admitted_are_right(build):
    _check(build, range(2, 26), 1, SHORT)


def test_numbers_in_order_may_be_folded_at_the_smaller_sizes_alone():
    _check(_counts, [3, 64, 255, 256, 257, 1100], 3, (3, 600, 1201))


@pytest.mark.parametrize("build", [_rows, _sums, _squares, _moves, _slopes])
def test_a_later_process_loads_what_an_earlier_one_made(build, tmp_path, capsys):
    with config.override(cache=str(tmp_path), debug=1):
        made, loaded = _general(build), _general(build)
        assert [line.split()[2] for line in capsys.readouterr().err.splitlines()] == [
            "compiled", "loaded",
        ]  # fmt: skip
    admitted = 0
    for n in SIZES:
        case, other = (general.at((3, n), _types(n)) for general in (made, loaded))
        assert (case is None) == (other is None)
        if case is not None:
            admitted += 1
            both = [_results(*pair, _feeds(n)) for pair in ((made, case), (loaded, other))]
            assert [x.tobytes() for x in both[0]] == [x.tobytes() for x in both[1]]
    assert admitted


def test_what_was_loaded_tells_of_an_index_out_of_range(tmp_path):
    with config.override(cache=str(tmp_path)):
        _, loaded = _general(_slopes), _general(_slopes)
        case, (x, w, ids) = loaded.at((3, 80), _types(80)), _feeds(80)
        ids[1, 2] = WIDTH
        with pytest.raises(OutOfRangeError, match=str(WIDTH)):
            _results(loaded, case, [x, w, ids])


def _every_other(lengths):
    """One step for many sizes that takes every other element, from steps for these."""
    samples = []
    for n in lengths:
        graph = Graph()
        with graph.as_default():
            x = op.placeholder(dtype=float32, shape=(n,))
            y = op.slice(x, begin=(0,), end=(n,), strides=(2,))
        step = specialize(Request(graph, (y,), (), (x,)), [x.type], {}, {})
        samples.append(((n,), storing(step, ("out0",), {})))
    return sized(samples)


def test_types_on_a_line_by_chance_serve_only_the_sizes_that_rules_give_them_for():
    extents = _every_other((4, 8, 12)).extents
    assert [n for n in range(4, 13) if extents.admits(extents.values([n]))] == [4, 6, 8, 10, 12]
    with pytest.raises(UnfitError):
        _every_other((5, 9, 13))


def test_what_has_no_kernel_for_many_sizes_raises():
    with pytest.raises((CompileError, UnfitError)):
        _general(lambda x, w, ids, n: [op.cumsum(x, axis=1)])


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """No program or family of an earlier test."""
    monkeypatch.setattr(programs, "_programs", type(programs._programs)())
    monkeypatch.setattr(programs, "_families", {})
    monkeypatch.setattr("weft.eager.record.dynamic_shape._families", type(programs._programs)())
    monkeypatch.setattr(programs, "HURRY", 0.0)
    monkeypatch.setattr(programs, "ENOUGH", 0.0)


def _training():
    """A training step on sentences of `length` words, and the parameters."""
    wf.manual_seed(0)
    words, norm, out = nn.Embedding(30, 16), nn.LayerNorm(16), nn.Linear(16, 4)
    layers = nn.ModuleList([words, norm, out])
    optimizer = wf.optim.SGD(layers.parameters(), lr=0.1)
    rng = np.random.default_rng(0)

    def step(n, label=0):
        x = norm(words(wf.from_numpy(rng.integers(0, 30, (2, n)))))
        y = F.scaled_dot_product_attention(x, x, x)
        labels = np.append(rng.integers(0, 4, 1), label)
        loss = F.cross_entropy(out(y.mean(1)), wf.from_numpy(labels))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return step, list(layers.parameters())


def _losses(lengths):
    step, _ = _training()
    return [step(n) for n in lengths]


LENGTHS = [40 + 7 * i % 60 for i in range(40)]


def _used(monkeypatch):
    """The sizes that a program for many was used for."""
    before = Family.general
    used = []

    def general(self, sizes, leaves):
        found = before(self, sizes, leaves)
        used.extend([sizes] if found else [])
        return found

    monkeypatch.setattr(Family, "general", general)
    return used


def test_a_loop_over_lengths_learns_as_it_does_without(monkeypatch):
    used = _used(monkeypatch)
    losses = _losses(LENGTHS)
    assert len(used) > 10
    programs._programs.clear()
    programs._families.clear()
    monkeypatch.setattr(Family, "general", lambda self, sizes, leaves: None)
    np.testing.assert_allclose(losses, _losses(LENGTHS), rtol=1e-4)


def test_callers_leave_it_once_the_loss_is_there(monkeypatch):
    losses = _losses(LENGTHS)
    TEAM.stop()
    monkeypatch.setattr(Team, "_start", lambda *_: None)  # the rest waits for its caller
    monkeypatch.setattr(executable, "AHEAD_NS", 0.0)
    monkeypatch.setattr("weft.eager.record.dynamic_shape._families", type(programs._programs)())
    programs._programs.clear()
    programs._families.clear()
    with config.override(threads=2):
        step, parameters = _training()
        assert [step(n) for n in LENGTHS] == losses
        assert flight._aloft
        assert all([np.isfinite(p.detach().numpy()).all() for p in parameters])
    assert not flight._aloft
    TEAM.stop()


def test_sizes_that_have_outgrown_a_program_get_another(monkeypatch):
    used = _used(monkeypatch)
    steps = range(20, 200, 3)
    losses = _losses(steps)
    (family,) = [f for f in sizes._families.values() if f.has_program]
    assert 1 < len(family._generals) < 5
    assert len(used) > len(steps) // 2
    programs._programs.clear()
    programs._families.clear()
    monkeypatch.setattr(Family, "general", lambda self, sizes, leaves: None)
    np.testing.assert_allclose(losses, _losses(steps), rtol=1e-4)


def test_a_table_that_ends_bounds_how_much_larger_sizes_are_planned_for(monkeypatch):
    used = _used(monkeypatch)
    table, few = wf.arange(0, 100).float().reshape(100, 1), wf.arange(0, 8).float()

    def total(n):
        best, _ = wf.topk(few * 2.0, 3)  # of one result nothing is left
        y = F.embedding(wf.arange(0, n), table)
        return (y.sum() * best.sum()).item()

    for n in range(60, 100):
        assert total(n) == n * (n - 1) / 2 * 36
    assert len(used) > 10


def test_sizes_below_which_other_calls_are_made_are_not_planned_for(monkeypatch):
    used = _used(monkeypatch)

    def last(n):
        x = wf.from_numpy(np.arange(4 * n, dtype=np.float32).reshape(n, 4))
        return (wf.cat((x, x))[-90:] * 2.0 + x[-50:].sum()).sum().item()

    for n in range(60, 120):
        x = np.arange(4 * n, dtype=np.float64).reshape(n, 4)
        wanted = (np.concatenate((x, x))[-90:] * 2 + x[-50:].sum()).sum()
        assert last(n) == pytest.approx(wanted, rel=1e-5)
    assert len(used) > 10


def test_shapes_are_compiled_no_faster_than_they_are_paid_for(monkeypatch):
    compiled = []
    finished = programs.finish

    def finish(step, threads):
        compiled.append(step)
        return finished(step, threads)

    monkeypatch.setattr(programs, "finish", finish)
    monkeypatch.setattr(Family, "make_program", lambda *_: None)
    monkeypatch.setattr(programs, "_patience", lambda sample: 4.0)
    clock = SimpleNamespace(perf_counter=itertools.count().__next__)  # each run takes a second
    monkeypatch.setattr(programs, "time", clock)
    shapes = 2 * programs.CHURN
    counts: list[int] = []
    for _ in range(12):
        before = len(compiled)
        for n in range(50, 50 + shapes):
            wf.sin(wf.from_numpy(np.ones(n, np.float32))).numpy()
        counts.append(len(compiled) - before)
    assert max(counts) <= shapes // 4 + 1
    assert sum(counts) > shapes // 2


def test_a_program_that_disagrees_with_the_interpreter_is_not_used(monkeypatch):
    used = _used(monkeypatch)
    monkeypatch.setattr(DynamicProgram, "agrees", lambda self, wanted, found, again: False)
    _losses(LENGTHS)
    assert len(used) == len([f for f in sizes._families.values() if not f._trials])


def test_a_label_out_of_range_raises_and_nothing_changes(monkeypatch):
    used = _used(monkeypatch)
    step, parameters = _training()
    for n in LENGTHS[:20]:
        step(n)
    count = len(used)
    assert count > 5
    with pytest.raises(OutOfRangeError, match="4"):
        step(next(n for n in range(45, 99) if n not in LENGTHS[:20]), label=4)
    assert len(used) > count
    for p in parameters:
        p.grad = None
    assert np.isfinite(step(58))


def test_results_that_are_rounding_alone_tell_nothing():
    general = _general(_rows)
    right, noise = np.ones(4, np.float32), np.array([1e-9, -1e-9], np.float32)
    other = -noise  # as one rounding more or less gives
    assert general.agrees([right, noise], [right, other], lambda: [right, other])
    assert not general.agrees([right, noise], [right, other], lambda: [right, noise])
    assert not general.agrees([right, noise], [2 * right, other], lambda: [right, other])


def test_inputs_are_shaken_in_their_last_bits():
    for dtype in (np.float32, np.float64, np.int64):
        x = np.array([-1, 0, 3], dtype)
        np.testing.assert_allclose(perturbed(x), x, rtol=1e-6, atol=1e-30)
        assert (perturbed(x) == x).all() == (dtype is np.int64)
