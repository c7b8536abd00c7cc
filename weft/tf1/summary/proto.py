"""`tf.Summary` and `tf.Event`: messages as plain objects."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from weft.formats import wire
from weft.formats.event import histogram, message, reading
from weft.tf1.framework.parsed import Parsed

__all__ = ["Event", "Summary"]


class Record:
    """Fields by name, `None` if missing."""

    def HasField(self, name: str) -> bool:
        """Whether a field is set."""
        return getattr(self, name) is not None


@dataclass
class Image(Record):
    """An encoded image."""

    height: Any = None
    width: Any = None
    colorspace: Any = None
    encoded_image_string: Any = None


@dataclass
class Audio(Record):
    """Encoded audio."""

    sample_rate: Any = None
    num_channels: Any = None
    length_frames: Any = None
    encoded_audio_string: Any = None
    content_type: Any = None


@dataclass
class HistogramProto(Record):
    """A histogram's buckets and counts."""

    min: Any = None
    max: Any = None
    num: Any = None
    sum: Any = None
    sum_squares: Any = None
    bucket_limit: Any = field(default_factory=list[float])
    bucket: Any = field(default_factory=list[float])


@dataclass
class Value(Record):
    """A value of a summary: its tag, and one of the other fields."""

    tag: Any = None
    simple_value: Any = None
    image: Any = None
    histo: Any = None
    audio: Any = None
    tensor: Any = None
    metadata: Any = None

    def WhichOneof(self, group: str) -> str | None:
        """The name of the field that is set."""
        del group
        kinds = ("simple_value", "image", "histo", "audio", "tensor")
        return next((name for name in kinds if self.HasField(name)), None)

    def encoded(self) -> bytes:
        """The encoded message."""
        tag = self.tag or ""
        kind = self.WhichOneof("value")
        if kind == "image":
            i = self.image
            return message.image(
                tag, i.encoded_image_string, i.height or 0, i.width or 0, i.colorspace or 0
            )
        if kind == "audio":
            a = self.audio
            return message.audio(
                tag, a.encoded_audio_string, a.sample_rate or 0, a.num_channels or 0,
                a.length_frames or 0,
            )  # fmt: skip
        if kind == "histo":
            h = self.histo
            return histogram.raw_histogram(
                tag, h.min or 0, h.max or 0, h.num or 0, h.sum or 0, h.sum_squares or 0,
                h.bucket_limit, h.bucket,
            )  # fmt: skip
        if kind == "tensor":
            return message.tensor_value(tag, message.tensor_proto(self.tensor), b"")
        return message.scalar(tag, float(self.simple_value or 0.0))


class Values(list[Any]):
    """The values of a summary."""

    def add(self, **fields: Any) -> Value:
        """Append a new value."""
        self.append(Value(**fields))
        return self[-1]


class Summary(Parsed):
    """Values by tag, which a `FileWriter` writes.

    Args:
        value: the values.

    >>> summary = Summary(value=[Summary.Value(tag="loss", simple_value=0.5)])
    >>> Summary.FromString(summary.SerializeToString()).value[0].simple_value
    0.5
    """

    Value = Value
    Image = Image
    Audio = Audio

    def __init__(self, value: Iterable[Value] = ()) -> None:
        self.value = Values(value)

    def SerializeToString(self) -> bytes:
        """The encoded message."""
        return message.summary(*[value.encoded() for value in self.value])

    def ParseFromString(self, serialized: bytes) -> int:
        """Replace the values by those of an encoded message.

        Raises:
            DataError: it is not a summary.
        """
        found = reading.event(wire.delimited(5, serialized))
        self.value = Values([_value(value) for value in found.values])
        return len(serialized)


@dataclass
class Event(Record):
    """An event at a step: a summary, a graph, or the file's version.

    Attributes:
        wall_time: seconds since 1970.
        step: the step.
        file_version: of the first event of a file.
        graph_def: the bytes of a `GraphDef`.
        summary: a `Summary`.
        tagged_run_metadata: the metadata of a run, with a tag.
    """

    wall_time: Any = None
    step: Any = None
    file_version: Any = None
    graph_def: Any = None
    summary: Any = None
    tagged_run_metadata: Any = None

    def encoded(self) -> list[bytes]:
        """The fields besides time and step."""
        if self.file_version:
            return [message.file_version()]
        if self.graph_def is not None:
            return [message.graph_field(self.graph_def)]
        return [message.summary_field((self.summary or Summary()).SerializeToString())]


def summary_iterator(path: str | os.PathLike[str]) -> Iterator[Event]:
    """The events of a file, in order.

    Args:
        path: the file.

    Raises:
        DataError: it is damaged; events before the damage are yielded first.
        OSError: it cannot be read.
    """
    for found in reading.read_events(path):
        yield Event(
            wall_time=found.wall_time,
            step=found.step,
            file_version=found.file_version,
            graph_def=found.graph_def or None,
            summary=Summary([_value(value) for value in found.values]),
            tagged_run_metadata=found.run_metadata,
        )


def _value(found: reading.SummaryValue) -> Value:
    value = Value(tag=found.tag, simple_value=found.simple_value, tensor=found.tensor)
    if found.image is not None:
        value.image = Image(encoded_image_string=found.image)
    if found.audio is not None:
        value.audio = Audio(encoded_audio_string=found.audio)
    if found.histogram is not None:
        value.histo = HistogramProto(*[found.histogram.get(number) for number in range(1, 8)])
    return value
