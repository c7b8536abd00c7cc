"""Knobs: values from the environment, and errors."""

import subprocess
import sys

import pytest

from weft import config
from weft.errors import ConfigError


def read(knob, **environment):
    program = f"from weft import config; print(config.get({knob!r}))"
    return subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True
    )


def test_an_empty_variable_is_as_good_as_none():
    assert read("cache", WEFT_CACHE="", XDG_CACHE_HOME="/somewhere").stdout == "/somewhere/weft\n"
    assert read("threads", WEFT_THREADS="").stdout == f"{config.get('threads')}\n"


def test_a_machine_of_many_processors_gets_a_full_team(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(384)), raising=False)
    assert config.KNOBS["threads"].default() == config.MAX_THREADS


@pytest.mark.parametrize(
    "variable, text, expects",
    [
        ("WEFT_THREADS", "0", "WEFT_THREADS: expected an integer from 1 to 256, got '0'"),
        ("WEFT_DEBUG", "loud", "WEFT_DEBUG: expected an integer from 0 to 6, got 'loud'"),
        ("WEFT_TARGET", "sse", "WEFT_TARGET: expected native | x86-64-v2 |"),
        ("WEFT_THREAD", "2", "unknown knob WEFT_THREAD: expected one of WEFT_THREADS,"),
    ],
)
def test_what_no_knob_takes_raises(variable, text, expects):
    found = read("threads", **{variable: text})
    assert found.returncode == 1 and expects in found.stderr


def test_an_override_holds_for_its_block():
    before = config.get("threads")
    with config.override(threads=3, verify=True):
        assert (config.get("threads"), config.get("verify")) == (3, True)
        with (
            pytest.raises(ConfigError, match="expected an integer from 1 to 256, got '0'"),
            config.override(threads=0),
        ):
            pass
    assert config.get("threads") == before
    with pytest.raises(ConfigError, match="unknown knob 'thread'"), config.override(thread=1):
        pass
