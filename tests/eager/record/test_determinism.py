"""Deterministic mode: for what has not the same bits without it."""

import pytest

import weft as wf
from weft import config, nn
from weft.eager.record.pending.state import trace
from weft.eager.record.run import tier_choice
from weft.eager.record.run.compiled_tier import Compiled
from weft.eager.record.run.stitched_tier import Stitched
from weft.errors import ArgumentError


@pytest.fixture
def deterministic():
    with config.override(deterministic=True):
        yield


def test_what_ends_a_step_leaves_nothing_to_wait_for_who_looks(deterministic):
    model = nn.Linear(3, 2)
    optimizer = wf.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    states = model.state_dict(), optimizer.state_dict()
    wf.ones(3).sin()
    model.load_state_dict(states[0])
    assert not trace.now.pending
    model(wf.ones(4, 3)).sum().backward()
    optimizer.step()
    assert not trace.now.pending
    assert all([p.grad.lazy.array is not None for p in model.parameters()])
    model(wf.ones(4, 3)).sum().backward()
    optimizer.load_state_dict(states[1])
    assert not trace.now.pending


def test_all_rows_of_a_table_are_updated(deterministic):
    table = nn.Embedding(1 << 10, 1 << 10)
    optimizer = wf.optim.Adam(table.parameters())
    table(wf.tensor([3, 5])).sum().backward()
    optimizer.step()
    assert not optimizer._lagged


def test_half_precision_alone_is_compiled_at_once(deterministic):
    def tiers():
        return [type(tier) for tier in tier_choice._tiers.values()]

    for dtype, tier in ((wf.float32, Stitched), (wf.bfloat16, Compiled)):
        tier_choice._tiers.clear()
        (wf.ones(3, 5).to(dtype).exp() * 3.0).float().numpy()
        assert set(tiers()) == {tier}


def test_the_mode_is_reported_and_refuses_what_is_no_truth_value():
    assert not wf.are_deterministic_algorithms_enabled()
    wf.use_deterministic_algorithms(True, warn_only=True)
    try:
        assert wf.are_deterministic_algorithms_enabled()
    finally:
        wf.use_deterministic_algorithms(False)
    with pytest.raises(ArgumentError, match="expected True or False, got 'yes'"):
        wf.use_deterministic_algorithms("yes")
