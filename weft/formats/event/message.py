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
TEXT: Final = 7  # TensorFlow's number of its type of strings
DATA_TYPES: Final = {
    "float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "complex64": 8,
    "int64": 9, "bool": 10, "bfloat16": 14, "uint16": 17, "complex128": 18, "float16": 19,
    "uint32": 22, "uint64": 23,
}  # fmt: skip
START, STOP, CHECKPOINT = 1, 2, 3


def event(wall_time: float, step: int | None = None, *fields: bytes) -> bytes:
    """An event: when, at which step, and what."""
    head = wire.float64(1, wall_time)
    if step is not None:
        head += wire.integer(2, int(step))
    return head + b"".join(fields)


def file_version() -> bytes:
    """What the first event of a file holds."""
    return wire.delimited(3, FILE_VERSION)


def graph_field(graph: bytes) -> bytes:
    """What an event with a graph holds."""
    return wire.delimited(4, graph)


def summary_field(summary: bytes) -> bytes:
    """What an event with a summary holds."""
    return wire.delimited(5, summary)


def session_field(status: int) -> bytes:
    """What an event at the start or the end of a session holds."""
    return wire.delimited(7, wire.integer(1, status))


def run_metadata_field(tag: str, metadata: bytes) -> bytes:
    """What an event with the times of a step holds."""
    return wire.delimited(8, wire.delimited(1, tag) + wire.delimited(2, metadata))


def summary(*values: bytes) -> bytes:
    """A summary of these values."""
    return b"".join([wire.delimited(1, value) for value in values])


def scalar(tag: str, value: float) -> bytes:
    """A number, in 32 bits."""
    return wire.delimited(1, tag) + wire.float32(2, value)


def image(tag: str, png: bytes, height: int, width: int, channels: int) -> bytes:
    """An image that is encoded already."""
    shape = wire.integer(1, height) + wire.integer(2, width) + wire.integer(3, channels)
    return wire.delimited(1, tag) + wire.delimited(4, shape + wire.delimited(4, png))


def audio(tag: str, wav: bytes, sample_rate: float, channels: int, frames: int) -> bytes:
    """A sound that is encoded already."""
    shape = wire.float32(1, sample_rate) + wire.integer(2, channels) + wire.integer(3, frames)
    content = shape + wire.delimited(4, wav) + wire.delimited(5, "audio/wav")
    return wire.delimited(1, tag) + wire.delimited(6, content)


def tensor_value(tag: str, tensor: bytes, metadata: bytes) -> bytes:
    """A tensor for a plugin."""
    return wire.delimited(1, tag) + wire.delimited(8, tensor) + wire.delimited(9, metadata)


def metadata(plugin: str, content: bytes = b"", display: str = "", description: str = "") -> bytes:
    """Which plugin a value is for, and what it says to it."""
    data = wire.delimited(1, wire.delimited(1, plugin) + wire.delimited(2, content))
    if display:
        data += wire.delimited(2, display)
    if description:
        data += wire.delimited(3, description)
    return data


def shape_proto(shape: Sequence[int | None] | None) -> bytes:
    """A shape; `None` is a dimension, or a rank, that is not known."""
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
    """An array of strings; of one dimension where no shape is given."""
    strings = list(texts)
    head = wire.integer(1, TEXT)
    head += wire.delimited(2, shape_proto([len(strings)] if shape is None else shape))
    return head + b"".join([wire.delimited(8, text) for text in strings])
