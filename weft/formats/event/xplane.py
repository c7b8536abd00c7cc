"""Time spans on several tracks, for TensorBoard's profile plugin.

XSpace          planes = 1, hostnames = 4
XPlane          id = 1, name = 2, lines = 3, event_metadata = 4, stat_metadata = 5: maps by number
XLine           id = 1, name = 2, timestamp_ns = 3, events = 4
XEvent          metadata_id = 1, offset_ps = 2, duration_ps = 3, stats = 4
XStat           metadata_id = 1, double_value = 2, str_value = 5
XEventMetadata, XStatMetadata   id = 1, name = 2

Source: xplane.proto of the profiler that TensorFlow and XLA share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from weft.formats import wire

HOST: Final = "/host:CPU"  # the plane's name for this machine's threads
_PS: Final = 1000  # picoseconds in a nanosecond


class Span(NamedTuple):
    """A span on a track: nanoseconds from a common origin, and numbers or strings about it."""

    name: str
    start: int
    end: int
    about: Mapping[str, float | str] = {}


class _Numbers:
    """Names, which a plane refers to by number."""

    def __init__(self) -> None:
        self._found: dict[str, int] = {}

    def of(self, name: str) -> int:
        return self._found.setdefault(name, len(self._found) + 1)

    def table(self, field: int) -> bytes:
        entries: list[bytes] = []
        for name, number in self._found.items():
            own = wire.integer(1, number) + wire.delimited(2, name)
            entries.append(wire.delimited(field, wire.integer(1, number) + wire.delimited(2, own)))
        return b"".join(entries)


def xspace(tracks: Mapping[str, Sequence[Span]], began: int, host: str) -> bytes:
    """One machine's tracks.

    Args:
        tracks: their spans, by name.
        began: the common origin, in nanoseconds since 1970.
        host: the machine's name.
    """
    events, figures = _Numbers(), _Numbers()
    plane = wire.integer(1, 0) + wire.delimited(2, HOST)
    for number, (name, spans) in enumerate(tracks.items(), 1):
        line = wire.integer(1, number) + wire.delimited(2, name) + wire.integer(3, began)
        line += b"".join([wire.delimited(4, _event(span, events, figures)) for span in spans])
        plane += wire.delimited(3, line)
    plane += events.table(4) + figures.table(5)
    return wire.delimited(1, plane) + wire.delimited(4, host)


def _event(span: Span, events: _Numbers, figures: _Numbers) -> bytes:
    content = wire.integer(1, events.of(span.name)) + wire.integer(2, span.start * _PS)
    content += wire.integer(3, (span.end - span.start) * _PS)
    for name, value in span.about.items():
        shown = wire.delimited(5, value) if isinstance(value, str) else wire.float64(2, value)
        content += wire.delimited(4, wire.integer(1, figures.of(name)) + shown)
    return content
