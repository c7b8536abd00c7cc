"""Forms in which sizes differ that are equal in others: their kernels serve both.

Sizes of a call may be equal by chance, as where a batch is as large as a layer is wide. Nobody can
list all such forms.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from weft.library.form import Form

_MARK: Final = re.compile(r"'@(\d+)'")


def frame(text: str) -> str:
    """What is left of a form's text if no size tells which others are equal to it."""
    return _MARK.sub("'@'", text)


def frames(texts: Iterable[str]) -> Mapping[str, str]:
    """For each frame the sizes of all forms that have it, as text."""
    found: dict[str, list[list[int]]] = {}
    for text in texts:
        if _MARK.search(text):
            found.setdefault(frame(text), []).append(_marks(text))
    return {key: json.dumps(rows, separators=(",", ":")) for key, rows in found.items()}


def looser(form: Form, text: str, known: str) -> Form | None:
    """A known form in which no sizes are equal that may differ in this one; `None` if none is.

    Args:
        text: the form's text.
        known: what `frames` tells of its frame.
    """
    own = _marks(text)
    for row in json.loads(known):
        place = dict(zip(row, own, strict=True))
        if [place[mark] for mark in row] == own:
            sizes = [form.sizes[place[mark]] for mark in range(len(place))]
            return Form(_marked(form.key, iter(row)), tuple(sizes))
    return None


def _marks(text: str) -> list[int]:
    return [int(mark) for mark in _MARK.findall(text)]


def _marked(part: Any, marks: Iterator[int]) -> Hashable:
    """A form's key with other marks, in the order of its text."""
    if type(part) is tuple:
        return tuple([_marked(x, marks) for x in cast("Sequence[Any]", part)])
    is_mark = type(part) is str and re.fullmatch(r"@\d+", part)
    return f"@{next(marks)}" if is_mark else part
