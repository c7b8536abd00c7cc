"""Training gives the same bits from a cold or a warm cache, in one run or in parts, on any number
of threads, without any setting.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft as wf
from tests.eager.record import continued

STEPS = 6
SAVED = tuple(sorted(int(n) for n in np.random.default_rng(0).permutation(range(1, STEPS))[:2]))


def train(
    folder: Path, name: str, start: int = 0, saved: tuple[int, ...] = (), **knobs: Any
) -> Any:
    """What a process has at the end of all trainings."""
    environment = {
        **os.environ, "WEFT_CACHE": str(folder / "cache"),
        "PYTHONPATH": str(Path(wf.__file__).parents[1]),
        **{f"WEFT_{knob.upper()}": str(value) for knob, value in knobs.items()},
    }  # fmt: skip
    arguments = [str(x) for x in (folder, name, start, STEPS, *saved)]
    subprocess.run([sys.executable, continued.__file__, *arguments], check=True, env=environment)
    return dict(flat(wf.load(folder / name)))


def flat(found: Any, path: str = "") -> Any:
    """The arrays of nested results, by path."""
    if isinstance(found, dict | list):
        items = found.items() if isinstance(found, dict) else enumerate(found)
        for key, value in items:
            yield from flat(value, f"{path}/{key}")
    else:
        yield path, found.numpy() if isinstance(found, wf.Tensor) else np.asarray(found)


def apart(whole: Any, part: Any, start: int = 0) -> list[str]:
    """What has not the same bits; losses are known from step `start` on."""
    assert whole.keys() == part.keys()
    return [
        path
        for path, wanted in whole.items()
        if (wanted[start:] if path.endswith("losses") else wanted).tobytes() != part[path].tobytes()
    ]


@pytest.mark.slow
@pytest.mark.parametrize("target", ["native", "x86-64-v3"])
def test_ten_networks_have_the_same_bits(target: str, tmp_path: Path) -> None:
    """Five processes: some 40 s each on a quiet machine, the first one a minute more."""
    whole = train(tmp_path, "cold", threads=2, target=target)
    assert all(np.isfinite(x).all() for path, x in whole.items() if path.endswith("losses"))
    assert not apart(whole, train(tmp_path, "warm", saved=SAVED, threads=1, target=target))
    assert not apart(whole, train(tmp_path, "four", threads=4, target=target))
    for start in SAVED:
        part = train(tmp_path, f"from {start}", start, threads=1 + start % 2, target=target)
        assert not apart(whole, part, start)


def test_another_bit_is_noticed() -> None:
    one = {"/a/model/w": np.ones(3, np.float32), "/a/losses": np.arange(3, dtype=np.float32)}
    part = {**one, "/a/losses": one["/a/losses"][1:]}
    assert not apart(one, part, 1)
    part["/a/model/w"] = np.nextafter(one["/a/model/w"], np.float32(2))
    assert apart(one, part, 1) == ["/a/model/w"]
