"""Docstrings that name every argument of a layer, those of its base classes included.

A class documents the arguments that it adds; the rest of its docstring's `Args:` section comes from
its base classes, and from one table for the options of weights.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final

WEIGHTS: Final = {
    "initializer": "initial values of the weights: an initializer or its name.",
    "regularizer": "losses of the weights: a function or its name.",
    "constraint": "projections of the weights after each update: a function or its name.",
}
"""What the options of weights are, such as `kernel_initializer`."""

_ENTRY: Final = re.compile(r"^    (\*{0,2}\w+(?:, \*{0,2}\w+)*): ", re.MULTILINE)


def arguments_in(text: str | None) -> dict[str, str]:
    """The entries of a docstring's `Args:` section, by argument."""
    _, _, section = inspect.cleandoc(text or "").partition("Args:\n")
    section = re.split(r"^\S", section, maxsplit=1, flags=re.MULTILINE)[0]
    _, *parts = _ENTRY.split(section)
    entries = zip(parts[::2], parts[1::2], strict=True)
    return {name: " ".join(told.split()) for names, told in entries for name in names.split(", ")}


def documented(text: str, names: Sequence[str], known: Mapping[str, str]) -> str:
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
    if not section:
        head, rest = _split(text)
    else:
        _, *later = re.split(r"^(?=\S)", rest, maxsplit=1, flags=re.MULTILINE)
        rest = "".join(later)
    told = [n for n in names if n in known]
    lines = [
        textwrap.fill(f"{', '.join(group)}: {entry}", 96, initial_indent=" " * 4,
                      subsequent_indent=" " * 8, break_long_words=False, break_on_hyphens=False)
        for entry, group in groupby(told, lambda n: known[n])
    ]  # fmt: skip
    parts = [head.rstrip(), "Args:\n" + "\n".join(lines) if lines else "", rest.rstrip()]
    return "\n\n".join(part for part in parts if part)


def _split(text: str) -> tuple[str, str]:
    """The part of a docstring before its first section or example, and the rest."""
    place = re.search(r"^(Raises:|Attributes:|>>> )", text, re.MULTILINE)
    return (text[: place.start()], text[place.start() :]) if place else (text, "")


def arguments_known(kind: type) -> dict[str, str]:
    """What the docstrings of a class and of its bases say of arguments."""
    options = getattr(kind, "weight_options", ())
    entries = {n: WEIGHTS[n.rpartition("_")[2]] for n in options}
    for base in reversed(kind.__mro__):
        entries |= arguments_in(base.__doc__)
    return entries
