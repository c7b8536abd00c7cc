"""Packs: made, loaded, refused; what they spare a process."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import weft as wf
from weft import config
from weft.codegen.target import PORTABLE, portable
from weft.library import entry
from weft.library.making import Listed, listed, made
from weft.runtime.compilation import compiler, pack

FIRST = 12
"""Forms, among which are those of a product of matrices of ones."""


@pytest.fixture(scope="module", autouse=True)
def native() -> Iterator[None]:
    """Packs here are for this machine, as other processes look for them."""
    with config.override(target="native"):
        yield


@pytest.fixture(scope="module")
def some(native: None) -> bytes:
    del native
    return made(portable(), itertools.islice(listed(), FIRST))


def test_a_pack_is_loaded(some: bytes):
    found = pack.opened(pack.sealed(some, "me"), portable(), "me")
    assert found is not None
    forms = {form for form, _ in itertools.islice(listed(), FIRST)}
    assert len(found) > len(forms)  # the kernel of copies, and which sizes are equal in which form
    assert found.find(entry.COPY) is not None
    assert found.find("no form") is None


def test_a_pack_of_another_maker_or_target_is_refused(some: bytes):
    data = pack.sealed(some, "me")
    other = next(target for target in PORTABLE.values() if target != portable())
    assert pack.opened(data, portable(), "someone else") is None
    assert pack.opened(data, other, "me") is None


@pytest.mark.parametrize("part", [0.0, 0.001, 0.3, 0.9, 0.9999])
def test_a_damaged_pack_is_refused(some: bytes, part: float):
    data = bytearray(pack.sealed(some, "me"))
    data[int(part * len(data))] ^= 4
    assert pack.opened(bytes(data), portable(), "me") is None
    assert pack.opened(bytes(data[:-1]), portable(), "me") is None
    assert pack.opened(b"", portable(), "me") is None


PRODUCT = """
import sys, weft as wf
x = wf.ones(1000, 1000)
y = x @ x
assert y.numpy()[3, 4] == 1000.0
print(*sorted({"llvmlite.binding", "subprocess", "weft.codegen.loop"} & sys.modules.keys()))
"""


def output_of(code: str, folder: Path) -> str:
    """What another process prints, with a cache of its own."""
    environment = {**os.environ, "WEFT_CACHE": str(folder), "WEFT_TARGET": "native"}
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment
    ).stdout


def test_a_process_with_a_pack_compiles_nothing(some: bytes, tmp_path: Path):
    with config.override(cache=str(tmp_path)):
        compiler.cache().store({pack.key_of(portable()): pack.sealed(some, pack.made_here())})
    assert output_of(PRODUCT, tmp_path) == "\n"
    kept = [file for file in tmp_path.glob("*.o") if file.stat().st_size > 1000]
    assert len(kept) == 1


def test_a_process_does_without_a_damaged_pack(some: bytes, tmp_path: Path):
    with config.override(cache=str(tmp_path)):
        data = bytearray(pack.sealed(some, pack.made_here()))
        data[-99] ^= 1
        compiler.cache().store({pack.key_of(portable()): bytes(data)})
    assert "subprocess" in output_of(PRODUCT, tmp_path)


def test_other_sizes_than_those_of_a_pack_are_written(some: bytes, monkeypatch):
    found = pack.opened(pack.sealed(some, "me"), portable(), "me")
    monkeypatch.setattr(entry, "pack_of", lambda target: found)
    monkeypatch.setattr(entry, "_entries", {})
    for n in (2, 3, 17, 1000):
        x = np.arange(n * n, dtype=np.float32).reshape(n, n) % 5
        y = (wf.tensor(x) @ wf.tensor(x)).numpy()
        np.testing.assert_allclose(y, x @ x, rtol=1e-5)


def test_packs_of_all_targets_can_be_made_here():
    for target in PORTABLE.values():
        data = made(target, [Listed(*one) for one in itertools.islice(listed(), 3)])
        assert pack.sealed(data, "me").startswith(pack.MAGIC)


def test_threads_that_ask_at_once_get_one(monkeypatch):
    """A second one would be freed, and its code may run."""
    asked = threading.Barrier(4)

    def kept(target):
        time.sleep(0.05)
        return object()

    monkeypatch.setattr(pack, "_packs", {})
    monkeypatch.setattr(pack, "_installed", lambda target: None)
    monkeypatch.setattr(pack, "_kept", kept)

    def ask(_):
        asked.wait()
        return pack.pack_of(portable())

    with ThreadPoolExecutor(4) as threads:
        assert len(set(map(id, threads.map(ask, range(4))))) == 1
