"""A plan between processes: a recipe as `weft.runtime.recipe.dump` wrote it, and its kernels."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from weft.host.deferred import Deferred

if TYPE_CHECKING:
    import json
else:
    json = Deferred("json")

_LENGTH: Final = struct.Struct("<Q")


class Written(NamedTuple):
    """A kernel's key in the cache, its name and its text."""

    key: str
    name: str
    ir: str


def packed(recipe: bytes, kernels: Iterable[Written]) -> bytes:
    """Both in one."""
    return _LENGTH.pack(len(recipe)) + recipe + json.dumps([*kernels]).encode()


def unpacked(body: bytes) -> tuple[bytes, Sequence[Written]]:
    """What `packed` was given."""
    (size,) = _LENGTH.unpack_from(body)
    end = _LENGTH.size + size
    return body[_LENGTH.size : end], [Written(*x) for x in json.loads(body[end:])]
