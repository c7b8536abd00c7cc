"""Every operation of the registry has the same bits in both tiers, on any number of threads."""

from __future__ import annotations

import numpy as np
import pytest
from tiers import COMPILED, STITCHED, TIERS, assert_same, in_tier, results_of, single

import weft as wf
from weft.codegen.loop import order
from weft.eager.record.memory import memory_pool
from weft.errors import MismatchError
from weft.ops.declaration import REGISTRY, Boundary, Op

OPS = {
    name: op for name, op in REGISTRY.items() if not isinstance(op.lower, Boundary) and single(op)
}
SAMPLE = np.random.default_rng(0).permutation(list(OPS))[:10]


def check(op: Op) -> None:
    """Library kernels on one thread and two, and programs on one, or two for every other op."""
    cases = single(op)
    found = []
    for name, threads in (*TIERS[:2], TIERS[2 + list(OPS).index(op.name) % 2]):
        with in_tier(name, threads):
            found.append(results_of(op, cases))
    for other in found[1:]:
        assert_same(found[0], other)


@pytest.mark.parametrize("name", SAMPLE)
def test_an_operation_of_a_sample_has_the_same_bits(name: str) -> None:
    check(OPS[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", OPS)
def test_an_operation_has_the_same_bits(name: str) -> None:
    check(OPS[name])


def test_another_order_of_a_sum_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: compiled programs cut rows in shorter parts than library kernels do."""
    x = wf.tensor(np.random.default_rng(0).standard_normal((3, 1000)).astype("f"))
    found = []
    for name in (STITCHED, COMPILED):
        with in_tier(name), monkeypatch.context() as patch:
            if name == COMPILED:
                patch.setattr(order, "ROW", 128)
            found.append([[x.sum(1).numpy().copy()]])
    with pytest.raises(MismatchError, match="differs by up to"):
        assert_same(*found)


def test_what_is_read_before_it_is_written_is_noticed() -> None:
    with in_tier(STITCHED):
        assert np.isnan(memory_pool.empty((5,), np.dtype(np.float32))).all()


def test_a_row_of_a_narrow_matmul_is_not_read_beyond_its_end() -> None:
    x, y = np.ones((15, 48), np.float32), np.ones((48, 8), np.float32)
    y[:16, 1:] = np.inf
    with in_tier(STITCHED):
        found = (wf.tensor(x) @ wf.tensor(y)).numpy()
    assert (found[:, 0] == 48).all() and np.isinf(found[:, 1:]).all()
