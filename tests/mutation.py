"""Random damage to files, as by disks, networks and programs, from a seed."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence

Way = Callable[[bytearray, random.Random], None]


def _flip(data: bytearray, draw: random.Random) -> None:
    data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)


def _change(data: bytearray, draw: random.Random) -> None:
    data[draw.randrange(len(data))] = draw.choice(b'0123456789"{}[],: aeflnrstuw.\x00\xff')


def _cut(data: bytearray, draw: random.Random) -> None:
    del data[draw.randrange(len(data)) :]


def _remove(data: bytearray, draw: random.Random) -> None:
    start = draw.randrange(len(data))
    del data[start : start + draw.randint(1, 64)]


def _insert(data: bytearray, draw: random.Random) -> None:
    place = draw.randrange(len(data) + 1)
    data[place:place] = draw.randbytes(draw.randint(1, 64))


def _swap(data: bytearray, draw: random.Random) -> None:
    size = draw.choice([1, 4, 16, 64])
    a, b = (draw.randrange(max(1, len(data) - size)) for _ in range(2))
    data[a : a + size], data[b : b + size] = data[b : b + size], data[a : a + size]


def _clear(data: bytearray, draw: random.Random) -> None:
    start, size = draw.randrange(len(data)), draw.randint(1, 256)
    data[start : start + size] = bytes(len(data[start : start + size]))


def _reword(data: bytearray, draw: random.Random) -> None:
    """Another digit or letter in the header, which stays good JSON."""
    places = [i for i in range(8, 8 + _length(data)) if chr(data[i]).isalnum()]
    data[draw.choice(places)] = draw.choice(b"0123456789abcdef")


def _rewrite(data: bytearray, draw: random.Random) -> None:
    """A key twice, one removed, or two exchanged, and the length of the header put right.

    What is left has a key: nothing tells a file without any from an empty one of another library.
    """
    end = 8 + _length(data)
    header = json.loads(bytes(data[8:end]))
    room = draw.choice([header, header["__metadata__"]])
    if not room:
        return
    items = [f"{json.dumps(k)}:{json.dumps(v)}" for k, v in room.items()]
    way, i, j = draw.randrange(3), draw.randrange(len(items)), draw.randrange(len(items))
    if way == 0:
        items.insert(j, items[i])
    elif way == 1 and len(header) > 1:
        del items[i]
    else:
        items[i], items[j] = items[j], items[i]
    new = "{" + ",".join(items) + "}"
    if room is not header:
        rest = [f"{json.dumps(k)}:{json.dumps(v)}" for k, v in header.items()][1:]
        new = "{" + ",".join([f'"__metadata__":{new}', *rest]) + "}"
    text = new.encode()
    data[:end] = len(text).to_bytes(8, "little") + text


def _length(data: bytearray) -> int:
    return int.from_bytes(data[:8], "little")


ANY = (_flip, _change, _cut, _remove, _insert, _swap, _clear)
"""Ways to damage any file."""
WAYS = (*ANY, _reword, _rewrite)


def mutated(whole: bytes, draw: random.Random, ways: Sequence[Way] = WAYS) -> bytes:
    """Another content than `whole`, damaged in one of many ways."""
    while True:
        data = bytearray(whole)
        draw.choice(ways)(data, draw)
        if bytes(data) != whole:
            return bytes(data)
