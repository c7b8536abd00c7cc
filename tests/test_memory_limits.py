"""A result too large for memory raises at its line, before any table for it is built."""

import itertools
import os
import pathlib
import time

import numpy as np
import pytest

import weft as wf
import weft.numpy as wnp
from weft import signal
from weft.errors import OutOfMemoryError, OutOfRangeError
from weft.host.memory import capacity
from weft.nn import functional as F
from weft.ops.declaration.memory_check import check_room, check_table
from weft.scipy import special

MANY = 1 << 42  # 4 TB of bytes
SIDE = 1 << 21  # whose square that is
X = wf.arange(4.0)
IMAGE = wf.ones(1, 1, 4, 4)
LABELS = wf.tensor([0, 1])

HUGE = {
    "zeros": lambda: wf.zeros(MANY),
    "empty": lambda: wf.empty(MANY),
    "beyond any address": lambda: wf.zeros(2**63),
    "of no elements beyond any address": lambda: wf.zeros(0, 2**63),
    "full_like": lambda: wf.full_like(X.expand(MANY, 4), 1.0),
    "arange": lambda: wf.arange(MANY),
    "arange of fractions": lambda: wf.arange(0.0, MANY, 0.5),
    "as_strided": lambda: X.as_strided((MANY,), (0,)),
    "linspace": lambda: wf.linspace(0, 1, MANY),
    "logspace": lambda: wf.logspace(0, 1, MANY),
    "eye": lambda: wf.eye(SIDE),
    "randperm": lambda: wf.randperm(MANY),
    "tril_indices": lambda: wf.tril_indices(SIDE, SIDE),
    "triu_indices": lambda: wf.triu_indices(1, MANY),
    "vander": lambda: wf.vander(X, MANY),
    "combinations": lambda: wf.combinations(wf.arange(10**5), 5),
    "cartesian_prod": lambda: wf.cartesian_prod(wf.arange(SIDE), wf.arange(SIDE)),
    "outer": lambda: wf.outer(wf.arange(SIDE), wf.arange(SIDE)),
    "kron": lambda: wf.kron(wf.arange(SIDE), wf.arange(SIDE)),
    "broadcast sum": lambda: wf.arange(SIDE)[:, None] + wf.arange(SIDE),
    "expanded, then added to": lambda: X[:1].expand(MANY) + 1,
    "tile": lambda: X.tile(MANY),
    "repeat_interleave": lambda: wf.repeat_interleave(X, MANY),
    "diag_embed": lambda: wf.diag_embed(wf.arange(SIDE)),
    "bincount": lambda: wf.bincount(LABELS, minlength=MANY),
    "histc": lambda: wf.histc(X, MANY),
    "histogramdd": lambda: wf.histogramdd(wf.ones(3, 2), [SIDE, SIDE]),
    "fft": lambda: wf.fft.fft(X, MANY),
    "fftfreq": lambda: wf.fft.fftfreq(MANY),
    "kaiser_window": lambda: wf.kaiser_window(MANY),
    "signal.windows": lambda: signal.windows.hann(MANY),
    "multigammaln": lambda: special.multigammaln(np.ones(3), MANY),
    "one_hot": lambda: F.one_hot(LABELS, MANY),
    "pad": lambda: F.pad(X, (MANY, 0)),
    "unfold": lambda: F.unfold(IMAGE, 3, padding=SIDE),
    "interpolate": lambda: F.interpolate(IMAGE, scale_factor=2e7),
    "interpolate to a line": lambda: F.interpolate(IMAGE[0], MANY, mode="linear"),
    "adaptive_avg_pool1d": lambda: F.adaptive_avg_pool1d(IMAGE[0], MANY),
    "adaptive_max_pool2d": lambda: F.adaptive_max_pool2d(IMAGE, SIDE),
    "affine_grid": lambda: F.affine_grid(wf.ones(1, 2, 3), (1, 1, SIDE, SIDE)),
    "Linear": lambda: wf.nn.Linear(SIDE, SIDE),
    "Embedding": lambda: wf.nn.Embedding(SIDE, SIDE),
    "numpy.eye": lambda: wnp.eye(SIDE),
    "numpy.tri": lambda: wnp.tri(SIDE),
    "numpy.indices": lambda: wnp.indices((SIDE, SIDE)),
    "numpy.pad": lambda: wnp.pad(wnp.ones(3), MANY),
    "numpy.geomspace": lambda: wnp.geomspace(1, 2, MANY),
    "jit": lambda: wf.func.jit(lambda x: wf.zeros(MANY) + x)(X[0]),
}


@pytest.mark.parametrize("name", HUGE)
def test_a_huge_result_raises_at_once(name):
    start = time.process_time()
    with pytest.raises(OutOfMemoryError, match=r"not enough memory: .*test_memory_limits\.py:\d+"):
        HUGE[name]()
    assert time.process_time() - start < 2


GRAPHS = {
    "zeros": lambda tf: tf.zeros([MANY]),
    "constant": lambda tf: tf.constant(1.0, shape=[2**62]),
    "range": lambda tf: tf.range(MANY),
    "one_hot": lambda tf: tf.one_hot([0, 1], MANY),
    "sequence_mask": lambda tf: tf.sequence_mask([1, 2], MANY),
    "tile": lambda tf: tf.tile([1.0], [MANY]),
    "linspace": lambda tf: tf.linspace(0.0, 1.0, MANY),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_so_is_a_huge_node_of_a_graph(name):
    with pytest.raises(OutOfMemoryError, match="not enough memory"):
        GRAPHS[name](wf.tf1)


def test_views_take_no_memory():
    assert X[:1].expand(MANY).shape == (MANY,)
    wide = X[2:3].expand(SIDE, SIDE).T
    assert wide.shape == (SIDE, SIDE)
    assert (X + 1).tolist() == [1, 2, 3, 4]  # computed meanwhile
    assert wide[5, :3].tolist() == [*wide[-2:, 7:8].ravel().tolist(), 2] == [2, 2, 2]
    assert wide.numpy().strides == (0, 0)
    with pytest.raises(OutOfMemoryError):
        wide.exp()
    assert wf.tril_indices(2, 2**62).tolist() == [[0, 1, 1], [0, 0, 1]]


def test_a_view_is_still_of_a_size_that_exists():
    with pytest.raises(OutOfMemoryError, match="broadcast_to"):
        X[:1].expand(2**62, 4)


def test_the_message_tells_what_was_asked_and_what_there_is():
    text = f"expected at most {capacity():,} bytes, got {4 * MANY:,} for float32 of shape"
    with pytest.raises(RuntimeError, match=text) as caught:
        wf.zeros(MANY)
    assert isinstance(caught.value, MemoryError)


def test_a_table_has_to_fit_into_what_is_left(monkeypatch):
    shape = (1 << 27,)
    check_table("table", shape, wf.uint8)
    monkeypatch.setattr("weft.ops.declaration.memory_check.available", lambda: (1 << 27) - 1)
    check_room("result", shape, wf.uint8)  # others may free the memory that it needs
    with pytest.raises(OutOfMemoryError, match="at most 134,217,727 bytes, got 134,217,728"):
        check_table("table", shape, wf.uint8)


def test_a_machine_is_no_larger_than_it_is():
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit = pathlib.Path("/sys/fs/cgroup/memory.max")
    text = limit.read_text().strip() if limit.exists() else "max"
    assert capacity() <= (min(pages, int(text)) if text.isdigit() else pages)


def test_sums_of_neighbors_stop_at_the_first_and_last_channel():
    x = wf.arange(1.0, 9.0).reshape(1, 2, 4)
    assert F.local_response_norm(x, 2**40, alpha=2.0**40).shape == x.shape
    wide = F.local_response_norm(x, 30, alpha=30.0)
    squares = np.square(x.numpy()).sum(1, keepdims=True)
    np.testing.assert_allclose(wide.numpy(), x.numpy() * (1 + squares) ** -0.75, rtol=1e-5)


def test_differences_stop_where_nothing_is_left():
    assert X.diff(2**40).shape == wnp.diff(wnp.ones(3), 2**40).shape == (0,)


@pytest.mark.parametrize(("size", "output"), [(4, 1000), (1000, 7)])
def test_adaptive_pooling_finds_its_windows_in_tables(size, output):
    x = wf.arange(float(size)).reshape(1, 1, size)
    ends = np.arange(output + 1) * size
    parts = [
        x.numpy()[0, 0, a // output : -(-b // output)].mean() for a, b in itertools.pairwise(ends)
    ]
    np.testing.assert_allclose(F.adaptive_avg_pool1d(x, output).numpy()[0, 0], parts, rtol=1e-6)


@pytest.mark.parametrize("name", [name for name in vars(wf.special) if "_polynomial_" in name])
def test_a_degree_that_would_take_forever_raises(name):
    degrees = wf.tensor([3, 2**40])
    with pytest.raises(OutOfRangeError, match=r"polynomial_\w+: expected degrees of at most"):
        getattr(wf.special, name)(wf.tensor([0.3, 1.5]), degrees).tolist()
