"""Docstrings that name every argument of a layer, those of its base classes included.

A class documents the arguments that it adds; the rest of its docstring's `Args:` section comes from
its base classes, and from one table of arguments that many layers have.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterable, Mapping
from itertools import groupby
from types import MappingProxyType
from typing import Final

COMMON: Final = {
    "activation": "a function of the outputs, or its name.",
    "activity_regularizer": "a loss of the outputs: a function or its name.",
    "args": "the arguments that follow, by position.",
    "data_format": '`"channels_last"` or `"channels_first"`.',
    "noise_shape": "a shape that broadcasts to the inputs'; elements along axes of size 1 share a "
    "decision.",
    "options": "arguments that all layers have, by name: see `Layer`.",
    "seed": "of the random numbers.",
    "use_bias": "whether there is a bias.",
}
"""Arguments of many layers."""
WEIGHTS: Final = {
    "initializer": "initial values of the weights: an initializer or its name.",
    "regularizer": "losses of the weights: a function or its name.",
    "constraint": "projections of the weights after each update: a function or its name.",
}
"""What the options of weights are, such as `kernel_initializer`."""

_ENTRY: Final = re.compile(r"^    (\*{0,2}\w+(?:, \*{0,2}\w+)*): ", re.MULTILINE)
_WIDTH: Final = 96  # what a method's docstring is indented by is left of 100 columns


def complete(
    kind: type, names: Iterable[str], known: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Name these arguments of a class in its docstring, as far as something is known of them."""
    kind.__doc__ = documented(kind.__doc__ or "", names, {**arguments_known(kind), **known})


def arguments_known(kind: type) -> dict[str, str]:
    """What docstrings of a class and of its bases say of arguments, and the tables here."""
    options = getattr(kind, "weight_options", ())
    entries = COMMON | {n: WEIGHTS[n.rpartition("_")[2]] for n in options}
    for base in reversed(kind.__mro__):
        entries |= arguments_in(base.__doc__)
    return entries


def arguments_in(text: str | None) -> dict[str, str]:
    """The entries of a docstring's `Args:` section, by argument."""
    _, _, section = inspect.cleandoc(text or "").partition("Args:\n")
    section = re.split(r"^\S", section, maxsplit=1, flags=re.MULTILINE)[0]
    _, *parts = _ENTRY.split(section)
    entries = zip(parts[::2], parts[1::2], strict=True)
    return {name: " ".join(told.split()) for names, told in entries for name in names.split(", ")}


def documented(text: str, names: Iterable[str], known: Mapping[str, str]) -> str:
    """A docstring whose `Args:` section has these arguments, as far as something is known of them.

    >>> print(documented("Adds.", ["x", "y", "z"], {"x": "terms.", "y": "terms.", "z": "a name."}))
    Adds.
    <BLANKLINE>
    Args:
        x, y: terms.
        z: a name.
    """
    text = inspect.cleandoc(text)
    head, section, rest = text.partition("Args:\n")
    begin = re.search(r"^\S" if section else r"^(Raises:|Attributes:|>>> )", rest or text, re.M)
    body = rest if section else text
    before = head if section else body[: begin.start()] if begin else body
    behind = body[begin.start() :] if begin else ""
    told = groupby([n for n in names if n in known], lambda n: known[n])
    lines = [line for entry, group in told for line in _entries(list(group), entry)]
    parts = [before.rstrip(), "\n".join(["Args:", *lines]) if lines else "", behind.rstrip()]
    return "\n\n".join(part for part in parts if part)


def _entries(names: list[str], entry: str) -> list[str]:
    """The lines of arguments of which the same is said: as many in one as fit."""
    count = len(names)
    while count > 1 and len(", ".join(names[:count])) > _WIDTH - 20:
        count -= 1
    label = ", ".join(names[:count])
    first = textwrap.fill(
        f"{label}: {entry}", _WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 8,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    return [first, *(_entries(names[count:], entry) if names[count:] else [])]
