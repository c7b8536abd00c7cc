"""Every knob in one table: an environment variable, and a context manager that overrides it.

>>> from weft import config
>>> with config.override(threads=1):
...     config.get("threads")
1
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from weft.errors import ConfigError
from weft.host.cores import core_count

Setting = int | str | bool


@dataclass(frozen=True)
class Knob:
    """One setting: its environment variable, how text becomes a value, and what it does."""

    name: str
    default: Callable[[], Setting]
    parse: Callable[[str], Setting]
    expects: str
    help: str

    @property
    def variable(self) -> str:
        """The environment variable, such as `WEFT_THREADS`."""
        return "WEFT_" + self.name.upper()


MAX_THREADS = 256  # as many as the driver's team has heads for


def _threads(text: str) -> int:
    count = int(text)
    if not 1 <= count <= MAX_THREADS:
        raise ValueError
    return count


MAX_CPU_DEVICES = 64


def _cpu_devices(text: str) -> int:
    count = int(text)
    if not 1 <= count <= MAX_CPU_DEVICES:
        raise ValueError
    return count


def _level(text: str) -> int:
    level = int(text)
    if not 0 <= level <= 6:
        raise ValueError
    return level


def _switch(text: str) -> bool:
    return {"0": False, "1": True}[text]


TARGETS = ("native", "x86-64-v2", "x86-64-v3", "x86-64-v4")
WINOGRAD = ("auto", "off", "2", "4")


def _one_of(*texts: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in texts:
            raise ValueError
        return text

    return parse


def _cache_folder() -> str:
    """Where caches lie on this system; an empty string without a home folder."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # others are to be ignored
        home = os.path.expanduser("~")  # itself, where a user has none
        if not os.path.isabs(home) or not os.path.isdir(home):
            return ""
        base = os.path.join(home, ".cache")
    return os.path.join(base, "weft")


def _flag(name: str, default: bool, meaning: str) -> Knob:
    return Knob(name, lambda: default, _switch, "0 | 1", meaning)


KNOBS = {
    knob.name: knob
    for knob in (
        Knob("threads", lambda: min(core_count(), MAX_THREADS), _threads,
             f"an integer from 1 to {MAX_THREADS}",
             "threads in the team that runs a step; results do not depend on it"),
        Knob("cpu_devices", lambda: 1, _cpu_devices, f"an integer from 1 to {MAX_CPU_DEVICES}",
             "devices `cpu:0`, `cpu:1`, ... for eager tensors, each with threads of its own; with "
             "one, every number means it"),
        Knob("target", lambda: "native", _one_of(*TARGETS), " | ".join(TARGETS),
             "instruction set the kernels may use"),
        Knob("winograd", lambda: "auto", _one_of(*WINOGRAD), " | ".join(WINOGRAD),
             "3x3 to 7x7 convolutions by Winograd's transforms: where they are faster, never, or "
             "always in squares of 2x2 or 4x4"),
        Knob("cache", _cache_folder, str, "a folder",
             "where compiled kernels and programs are kept between processes"),
        _flag("warm", True,
              "once a library kernel is missing, have the whole library made in the background"),
        _flag("compile", False, "compile programs before their first run"),
        _flag("deterministic", False,
              "equal bits also where that costs speed: `use_deterministic_algorithms`"),
        _flag("keep_freed", True,
              "from the first interpreted step with arrays over 128 KiB on, let the C library keep "
              "freed arrays of up to 31 MiB for the whole process, which makes such steps faster"),
        Knob("debug", lambda: 0, _level, "an integer from 0 to 6",
             "print 1 programs and tiers, 2 kernel times, 3 graphs after each pass, 4 loop IR, "
             "5 LLVM IR, 6 assembly"),
        _flag("verify", False, "verify the graph between passes and refuse NaN feeds"),
        _flag("reference", False, "compare every compiled value with the NumPy reference"),
        Knob("data", lambda: "", str, "a folder",
             "where datasets look for files before using the bundled ones"),
        Knob("variable_folder", lambda: "", str, "a folder",
             "where variables of 256 MiB and more lie in sparse files, which are gone with the "
             "process"),
    )
}  # fmt: skip

_local = threading.local()


def _environment() -> dict[str, Setting]:
    unknown = [v for v in os.environ if v.startswith("WEFT_") and v[5:].lower() not in KNOBS]
    if unknown:
        valid = ", ".join(knob.variable for knob in KNOBS.values())
        raise ConfigError(f"unknown knob {sorted(unknown)[0]}: expected one of {valid}")
    settings: dict[str, Setting] = {}
    for knob in KNOBS.values():
        text = os.environ.get(knob.variable)
        settings[knob.name] = _parse(knob, text) if text else knob.default()
    return settings


def _parse(knob: Knob, text: str) -> Setting:
    try:
        return knob.parse(text)
    except (ValueError, KeyError):
        raise ConfigError(f"{knob.variable}: expected {knob.expects}, got {text!r}") from None


_base = _environment()


def get(name: str) -> Setting:
    """The value of knob `name` now, in this thread.

    Raises:
        ConfigError: there is no such knob.
    """
    overrides: dict[str, Setting] | None = getattr(_local, "overrides", None)
    if overrides is not None and name in overrides:
        return overrides[name]
    try:
        return _base[name]
    except KeyError:
        raise ConfigError(f"unknown knob {name!r}: expected one of {', '.join(KNOBS)}") from None


def change(name: str, value: Setting) -> None:
    """Sets a knob for all threads, from now on.

    Raises:
        ConfigError: an unknown knob, or a value that it does not take.
    """
    _base.update(_checked({name: value}))


def _checked(settings: Mapping[str, Setting]) -> dict[str, Setting]:
    """Settings converted to their knobs' types."""
    found: dict[str, Setting] = {}
    for name, value in settings.items():
        if name not in KNOBS:
            raise ConfigError(f"unknown knob {name!r}: expected one of {', '.join(KNOBS)}")
        found[name] = _parse(
            KNOBS[name], str(int(value)) if isinstance(value, bool) else str(value)
        )
    return found


@contextlib.contextmanager
def override(**settings: Setting) -> Iterator[None]:
    """Sets knobs for the duration of a `with` block, in this thread only.

    Raises:
        ConfigError: an unknown knob, or a value that it does not take.
    """
    checked = _checked(settings)
    before: dict[str, Setting] | None = getattr(_local, "overrides", None)
    _local.overrides = {**(before or {}), **checked}
    try:
        yield
    finally:
        _local.overrides = before
