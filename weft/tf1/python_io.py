"""`tf.python_io`: TFRecord files.

>>> import tempfile
>>> path = tempfile.mktemp()
>>> with TFRecordWriter(path) as writer:
...     writer.write(b"one")
>>> list(tf_record_iterator(path))
[b'one']
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from weft.formats.tfrecord import RecordReader, RecordWriter


class TFRecordCompressionType:
    """Kinds of compression."""

    NONE = 0
    ZLIB = 1
    GZIP = 2


class TFRecordOptions:
    """A compression: `""`, `"ZLIB"`, `"GZIP"`, or a `TFRecordCompressionType`."""

    def __init__(self, compression_type: Any = None) -> None:
        self.compression_type = compression_type

    @staticmethod
    def get_compression_type_string(options: Any) -> str:
        """The compression's name; options may also be such a name."""
        kind = getattr(options, "compression_type", options)
        return ["", "ZLIB", "GZIP"][kind] if isinstance(kind, int) else kind or ""


class TFRecordWriter(RecordWriter):
    """Writes a TFRecord file.

    Args:
        path: the file; an existing one is replaced.
        options: a `TFRecordOptions`, or a compression's name.

    Raises:
        ArgumentError: the compression is unknown.
        OSError: the file cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str], options: Any = None) -> None:
        compression: Any = TFRecordOptions.get_compression_type_string(options)
        super().__init__(path, compression)


def tf_record_iterator(path: str | os.PathLike[str], options: Any = None) -> Iterator[bytes]:
    """The records of a file, checksums verified.

    Raises:
        DataError: a record is damaged; the message names the file and the byte.
        OSError: the file cannot be read.
    """
    compression: Any = TFRecordOptions.get_compression_type_string(options)
    with RecordReader(path, compression) as reader:
        yield from reader


__all__ = [
    "TFRecordCompressionType", "TFRecordOptions", "TFRecordWriter", "tf_record_iterator",
]  # fmt: skip
