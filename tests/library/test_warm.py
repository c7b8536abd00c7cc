"""The library of a machine: made at once by `weft warm`, or by a process in the background."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace

import pytest
from patience import eventually

from weft import config
from weft.cli import main
from weft.codegen.target import portable
from weft.library import background, making, warm
from weft.runtime.compilation import compiler, pack

SHORT = """
import itertools, sys
from weft.library import making, warm
forms = list(itertools.islice(making.listed(), 2))
warm.listed = lambda: forms
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch):
    """A cache of its own, and a short list of forms."""
    forms = list(itertools.islice(making.listed(), 2))
    monkeypatch.setattr(warm, "listed", lambda: iter(forms))
    with config.override(cache=str(tmp_path)):
        yield tmp_path


def test_it_is_made_once(folder: Path, capsys):
    assert main.main(["warm"]) == 0
    assert "made in" in capsys.readouterr().out
    assert main.main(["warm"]) == 0
    assert f"there already; 2 forms, 0.1 MB, in {folder}" in capsys.readouterr().out
    data = bytearray(compiler.cache().load(pack.key_of(portable())) or b"")
    data[-1] ^= 1
    compiler.cache().store({pack.key_of(portable()): bytes(data)})
    assert warm.keep(portable()).is_new  # one that is damaged is made again


def test_it_is_made_in_the_background_by_one_process(folder: Path, monkeypatch):
    code = background._CODE.replace("main(sys", f"{SHORT}main(sys")
    monkeypatch.setattr(background, "_CODE", code)
    monkeypatch.setattr(background, "pack_of", lambda target: None)
    background.begin.cache_clear()
    before = len(background._started)
    with config.override(warm=True):
        background.begin(portable())
        background.begin.cache_clear()  # as another process
        background.begin(portable())
    assert len(background._started) == before + 1
    eventually(lambda: compiler.cache().holds(pack.key_of(portable())))
    data = compiler.cache().load(pack.key_of(portable()))
    assert data is not None and pack.opened(data, portable(), pack.made_here()) is not None


@pytest.mark.filterwarnings("ignore:kernels are not cached")
@pytest.mark.parametrize("reason", ["knob", "folder"])
def test_nothing_is_started_where_it_is_not_wanted(reason: str, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(background, "pack_of", lambda target: None)
    refusing = SimpleNamespace(Popen=lambda *_, **__: pytest.fail("started"), DEVNULL=-3)
    monkeypatch.setattr(background, "subprocess", refusing)
    background.begin.cache_clear()
    cache = "" if reason == "folder" else str(tmp_path)
    with config.override(warm=reason != "knob", cache=cache):
        background.begin(portable())
    background.begin.cache_clear()
