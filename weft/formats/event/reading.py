"""Reads event files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from weft.formats import wire
from weft.formats.event.message import DATA_TYPES, TEXT
from weft.formats.tfrecord import Broken, RecordReader

WHAT: Final = "Event"
_TYPES: Final = {number: name for name, number in DATA_TYPES.items() if name != "bfloat16"}


@dataclass
class SummaryValue:
    """A value of a summary.

    Attributes:
        tag: its name.
        simple_value: a number, if it is one.
        image: PNG, if it is an image; `audio` and `histogram` likewise, the last with the fields of
            its message by number.
        tensor: an array, or a list of bytes.
        plugin: its plugin, with the data `content`.
    """

    tag: str = ""
    simple_value: float | None = None
    image: bytes | None = None
    audio: bytes | None = None
    histogram: dict[int, Any] | None = None
    tensor: Any = None
    plugin: str = ""
    content: bytes = b""


@dataclass
class Event:
    """An event; exactly one of its fields, apart from time and step, is set.

    Attributes:
        wall_time: its time in seconds since 1970.
        step: its step.
        file_version: the version in a file's first event.
        graph_def: a serialized graph.
        values: of its summary.
        status: of a session.
        run_metadata: the name of a step, and its serialized times.
    """

    wall_time: float = 0.0
    step: int = 0
    file_version: str = ""
    graph_def: bytes = b""
    values: list[SummaryValue] = field(default_factory=list[SummaryValue])
    status: int = 0
    run_metadata: tuple[str, bytes] | None = None


def read_events(path: str | os.PathLike[str], broken: Broken = "raise") -> Iterator[Event]:
    """The events of a file, in their order.

    Raises:
        DataError: the file is damaged, unless `broken` says to skip damage.
        OSError: it cannot be read.
    """
    with RecordReader(path, broken=broken) as reader:
        for record in reader:
            yield event(record)


def event(record: Any) -> Event:
    """Parses an event.

    Raises:
        DataError: the bytes are not an event; the message gives the position.
    """
    found = Event()
    for part in wire.fields(record, 0, WHAT):
        if part.number == 1:
            found.wall_time = wire.number(part, WHAT)
        elif part.number == 2:
            found.step = wire.signed(wire.expect(part, wire.VARINT, WHAT))
        elif part.number == 3:
            found.file_version = wire.text(part, WHAT)
        elif part.number == 4:
            found.graph_def = bytes(wire.expect(part, wire.DELIMITED, WHAT))
        elif part.number == 5:
            found.values += [_value(v) for v in _inside(part) if v.number == 1]
        elif part.number == 7:
            found.status = next((f.value for f in _inside(part) if f.number == 1), 0)
        elif part.number == 8:
            parts = {f.number: wire.expect(f, wire.DELIMITED, WHAT) for f in _inside(part)}
            name = str(parts.get(1, b""), "utf-8", "replace")
            found.run_metadata = name, bytes(parts.get(2, b""))
    return found


def _inside(part: wire.Field) -> list[wire.Field]:
    return list(wire.fields(wire.expect(part, wire.DELIMITED, WHAT), part.offset, WHAT))


def _value(part: wire.Field) -> SummaryValue:
    found = SummaryValue()
    for each in _inside(part):
        if each.number == 1:
            found.tag = wire.text(each, WHAT)
        elif each.number == 2:
            found.simple_value = wire.number(each, WHAT)
        elif each.number in (4, 6):
            raw = {f.number: f.value for f in _inside(each) if f.kind == wire.DELIMITED}
            encoded = bytes(raw.get(4, b""))
            if each.number == 4:
                found.image = encoded
            else:
                found.audio = encoded
        elif each.number == 5:
            found.histogram = {f.number: _histogram_field(f) for f in _inside(each)}
        elif each.number == 8:
            found.tensor = tensor(each)
        elif each.number == 9:
            found.plugin, found.content = _metadata(each)
    return found


def _histogram_field(part: wire.Field) -> Any:
    if part.kind != wire.DELIMITED:
        return wire.number(part, WHAT)
    if len(part.value) % 8:
        raise wire.broken(WHAT, part.offset, f"{len(part.value)} bytes of float64")
    return np.frombuffer(part.value, "<f8")


def _metadata(part: wire.Field) -> tuple[str, bytes]:
    name, content = "", b""
    for data in [d for d in _inside(part) if d.number == 1]:
        for each in _inside(data):
            if each.number == 1:
                name = wire.text(each, WHAT)
            elif each.number == 2:
                content = bytes(wire.expect(each, wire.DELIMITED, WHAT))
    return name, content


def tensor(part: wire.Field) -> Any:
    """An array of numbers, or a list of bytes.

    Raises:
        DataError: type, shape and content do not fit.
    """
    kind, shape, raw, texts = 0, list[int](), b"", list[bytes]()
    for each in _inside(part):
        if each.number == 1:
            kind = wire.expect(each, wire.VARINT, WHAT)
        elif each.number == 2:
            for size in [d for d in _inside(each) if d.number == 2]:
                sizes = [wire.signed(s.value) for s in _inside(size) if s.number == 1]
                shape.append(sizes[0] if sizes else 0)
        elif each.number == 4:
            raw = bytes(wire.expect(each, wire.DELIMITED, WHAT))
        elif each.number == 8:
            texts.append(bytes(wire.expect(each, wire.DELIMITED, WHAT)))
    if kind == TEXT:
        return texts
    try:
        return np.frombuffer(raw, _TYPES[kind]).reshape(shape)
    except (KeyError, ValueError) as error:
        raise wire.broken(WHAT, part.offset, f"a tensor of type {kind}: {error}") from None
