"""Events, summary values and tensors as TensorBoard's protocol buffers.

Event             wall_time = 1, step = 2, file_version = 3, graph_def = 4, summary = 5,
                  session_log = 7, tagged_run_metadata = 8
Summary           value = 1: tag = 1, simple_value = 2, image = 4, histo = 5, audio = 6,
                  tensor = 8, metadata = 9
SummaryMetadata   plugin_data = 1 (plugin_name = 1, content = 2), display_name = 2,
                  summary_description = 3
TensorProto       dtype = 1, tensor_shape = 2, tensor_content = 4, string_val = 8
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from weft.formats import wire

FILE_VERSION: Final = "brain.Event:2"
TEXT: Final = 7  # TensorFlow's type number of strings
DATA_TYPES: Final = {
    "float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "complex64": 8,
    "int64": 9, "bool": 10, "bfloat16": 14, "uint16": 17, "complex128": 18, "float16": 19,
    "uint32": 22, "uint64": 23,
}  # fmt: skip
START, STOP, CHECKPOINT = 1, 2, 3


def event(wall_time: float, step: int | None = None, *fields: bytes) -> bytes:
    """An event: its time, step and content."""
    head = wire.float64(1, wall_time)
    if step is not None:
        head += wire.integer(2, int(step))
    return head + b"".join(fields)


def file_version() -> bytes:
    """The content of a file's first event."""
    return wire.delimited(3, FILE_VERSION)


def graph_field(graph: bytes) -> bytes:
    """The content of an event with a graph."""
    return wire.delimited(4, graph)


def summary_field(summary: bytes) -> bytes:
    """The content of an event with a summary."""
    return wire.delimited(5, summary)


def session_field(status: int) -> bytes:
    """The content of an event at the start or the end of a session."""
    return wire.delimited(7, wire.integer(1, status))


def run_metadata_field(tag: str, metadata: bytes) -> bytes:
    """The content of an event with the times of a step."""
    return wire.delimited(8, wire.delimited(1, tag) + wire.delimited(2, metadata))


def summary(*values: bytes) -> bytes:
    """A summary of these values."""
    return b"".join([wire.delimited(1, value) for value in values])


def scalar(tag: str, value: float) -> bytes:
    """A number, in 32 bits."""
    return wire.delimited(1, tag) + wire.float32(2, value)


def image(tag: str, png: bytes, height: int, width: int, channels: int) -> bytes:
    """An already encoded image."""
    shape = wire.integer(1, height) + wire.integer(2, width) + wire.integer(3, channels)
    return wire.delimited(1, tag) + wire.delimited(4, shape + wire.delimited(4, png))


def audio(tag: str, wav: bytes, sample_rate: float, channels: int, frames: int) -> bytes:
    """An already encoded sound."""
    shape = wire.float32(1, sample_rate) + wire.integer(2, channels) + wire.integer(3, frames)
    content = shape + wire.delimited(4, wav) + wire.delimited(5, "audio/wav")
    return wire.delimited(1, tag) + wire.delimited(6, content)


def tensor_value(tag: str, tensor: bytes, metadata: bytes) -> bytes:
    """A tensor for a plugin."""
    return wire.delimited(1, tag) + wire.delimited(8, tensor) + wire.delimited(9, metadata)


def metadata(plugin: str, content: bytes = b"", display: str = "", description: str = "") -> bytes:
    """A value's plugin, and data for it."""
    data = wire.delimited(1, wire.delimited(1, plugin) + wire.delimited(2, content))
    if display:
        data += wire.delimited(2, display)
    if description:
        data += wire.delimited(3, description)
    return data


def shape_proto(shape: Sequence[int | None] | None) -> bytes:
    """A shape; `None` for an unknown dimension or rank."""
    if shape is None:
        return wire.integer(3, 1)
    sizes = [-1 if size is None else size for size in shape]
    return b"".join([wire.delimited(2, wire.integer(1, size)) for size in sizes])


def tensor_proto(array: Any) -> bytes:
    """An array of numbers."""
    found = np.asarray(array)
    if found.dtype.str.startswith(">"):
        found = found.astype(found.dtype.newbyteorder("<"))
    head = wire.integer(1, DATA_TYPES[found.dtype.name])
    return head + wire.delimited(2, shape_proto(found.shape)) + wire.delimited(4, found.tobytes())


def text_tensor(texts: Iterable[str | bytes], shape: Sequence[int] | None = None) -> bytes:
    """An array of strings; one-dimensional unless a shape is given."""
    strings = list(texts)
    head = wire.integer(1, TEXT)
    head += wire.delimited(2, shape_proto([len(strings)] if shape is None else shape))
    return head + b"".join([wire.delimited(8, text) for text in strings])
