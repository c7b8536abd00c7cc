"""Results that do not depend on what ran before."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import weft as wf
from weft import config, nn
from weft.eager.record.state import trace
from weft.errors import ArgumentError

STEPS, SAVED = 5, (1, 3)


def _train(folder, name, start, *saved, threads):
    script = Path(__file__).with_name("continued.py")
    environment = {
        **os.environ, "WEFT_THREADS": str(threads), "WEFT_CACHE": str(folder / "cache"),
        "PYTHONPATH": str(Path(wf.__file__).parents[1]),
    }  # fmt: skip
    arguments = [str(x) for x in (folder, name, start, STEPS, *saved)]
    subprocess.run([sys.executable, str(script), *arguments], check=True, env=environment)
    return dict(_flat(wf.load(folder / name)))


def _flat(found, path=""):
    if isinstance(found, dict):
        for key, value in found.items():
            yield from _flat(value, f"{path}/{key}")
    elif isinstance(found, list):
        for key, value in enumerate(found):
            yield from _flat(value, f"{path}/{key}")
    else:
        yield path, found.numpy() if isinstance(found, wf.Tensor) else np.asarray(found)


def _differ(whole, part, start=0):
    """What is not bitwise the same; losses are known from step `start` on."""
    assert whole.keys() == part.keys()
    return [
        path
        for path, wanted in whole.items()
        if (wanted[start:] if path.endswith("losses") else wanted).tobytes() != part[path].tobytes()
    ]


@pytest.mark.slow
def test_training_in_parts_has_the_bits_of_training_in_one_go(tmp_path):
    whole = _train(tmp_path, "whole", 0, threads=2)  # after other programs, nothing of it cached
    saving = _train(tmp_path, "saving", 0, *SAVED, threads=1)
    assert not _differ(whole, saving)
    for start in SAVED:
        part = _train(tmp_path, f"from {start}", start, threads=1 + start // 2)
        assert not _differ(whole, part, start)


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


def test_the_mode_is_reported_and_refuses_what_is_no_truth_value():
    assert not wf.are_deterministic_algorithms_enabled()
    wf.use_deterministic_algorithms(True, warn_only=True)
    try:
        assert wf.are_deterministic_algorithms_enabled()
    finally:
        wf.use_deterministic_algorithms(False)
    with pytest.raises(ArgumentError, match="expected True or False, got 'yes'"):
        wf.use_deterministic_algorithms("yes")
