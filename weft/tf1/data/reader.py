"""Readers in the graph: `reader.read(queue)` gives a key and a value in each run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.documentation import Reads
from weft.errors import ArgumentError
from weft.pipeline import reader as _kinds  # declares the kinds of readers
from weft.tf1.data_flow.handle import Handle, handle_of, resource
from weft.tf1.framework.convert import convert_to_tensor
from weft.tf1.framework.dtypes import int64, string
from weft.tf1.framework.graph import fail
from weft.tf1.framework.tensor import Operation, Tensor
from weft.tf1.python_io import TFRecordOptions

__all__ = [
    "FixedLengthRecordReader", "IdentityReader", "ReaderBase", "TFRecordReader", "TextLineReader",
    "WholeFileReader",
]  # fmt: skip

KINDS = _kinds


class ReaderBase:
    """Gives the records of files, whose names come from a queue.

    Args:
        reader_ref: the reference of the reader.
        supports_serialize: whether it can save its state.
    """

    def __init__(self, reader_ref: Tensor, supports_serialize: bool = False) -> None:
        self._handle: Handle = handle_of(reader_ref)
        self._serializes = supports_serialize

    def _make(self, kind: str, name: str | None, **options: Any) -> None:
        ref = resource(f"{kind}V2", options, None, name or kind).tensor
        ReaderBase.__init__(self, ref, supports_serialize=kind == "IdentityReader")

    reader_ref = Reads[Tensor]("_handle.tensor", "The reference of the reader.")
    supports_serialize = Reads[bool]("_serializes", "Whether it can save its state.")

    def read(self, queue: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
        """A key, such as `file:3`, and a value; each run takes the next pair.

        Args:
            queue: of the names of files, or the reference of such a queue.
            name: of the operation.
        """
        source = _queue(queue)
        key, value = self._handle.call(
            "ReaderReadV2", "read", (), [string] * 2, [()] * 2, name or "ReaderRead", waits=True,
            options=_from(source), beside=[source],
        ).outputs  # fmt: skip
        return key, value

    def read_up_to(
        self, queue: Any, num_records: Any, name: str | None = None
    ) -> tuple[Tensor, Tensor]:
        """Keys and values of at most `num_records` records, all of one file.

        Args:
            queue: of the names of files, or the reference of such a queue.
            num_records: the most records.
            name: of the operation.
        """
        count = convert_to_tensor(num_records, int64)
        source = _queue(queue)
        keys, values = self._handle.call(
            "ReaderReadUpToV2", "read_up_to", [count], [string] * 2, [[None]] * 2,
            name or "ReaderReadUpTo", waits=True, options=_from(source), beside=[source],
        ).outputs  # fmt: skip
        return keys, values

    def num_records_produced(self, name: str | None = None) -> Tensor:
        """The number of records given so far."""
        return self._count("ReaderNumRecordsProducedV2", "num_records_produced", name)

    def num_work_units_completed(self, name: str | None = None) -> Tensor:
        """The number of files that are read to the end."""
        return self._count("ReaderNumWorkUnitsCompletedV2", "num_work_units_completed", name)

    def _count(self, kind: str, method: str, name: str | None) -> Tensor:
        return self._handle.tensor_of(kind, method, int64, name=name)

    def serialize_state(self, name: str | None = None) -> Tensor:
        """The state as a text, of readers that can save it."""
        return self._handle.tensor_of("ReaderSerializeStateV2", "serialize_state", string,
                                      name=name)  # fmt: skip

    def restore_state(self, state: Any, name: str | None = None) -> Operation:
        """Continue from a saved state.

        Args:
            state: what `serialize_state` gave.
            name: of the operation.
        """
        saved = convert_to_tensor(state, string)
        saved.shape.assert_has_rank(0)
        return self._handle.call("ReaderRestoreStateV2", "restore_state", [saved], name=name)

    def reset(self, name: str | None = None) -> Operation:
        """Forget the file that is being read, and the counts."""
        return self._handle.call("ReaderResetV2", "reset", name=name)


def _queue(queue: Any) -> Handle:
    handle = handle_of(getattr(queue, "queue_ref", queue))
    if handle.selector:
        raise fail(ArgumentError, "read: expected one queue, got one of several by an index")
    return handle


def _from(queue: Handle) -> Mapping[str, Any]:
    spec = queue.spec
    return {"queue": (spec.kind, spec.name, spec.container, spec.options)}


class WholeFileReader(ReaderBase):
    """Whole files; the key is the name.

    Args:
        name: of the operation.
    """

    def __init__(self, name: str | None = None) -> None:
        self._make("WholeFileReader", name)


class TextLineReader(ReaderBase):
    """Lines of text files.

    Args:
        skip_header_lines: how many to leave out at the beginning of each file.
        name: of the operation.
    """

    def __init__(self, skip_header_lines: int | None = None, name: str | None = None) -> None:
        skip = int(skip_header_lines or 0)
        if skip < 0:
            raise fail(ArgumentError, f"skip_header_lines must be >= 0 not {skip}")
        self._make("TextLineReader", name, skip_header_lines=skip)


class FixedLengthRecordReader(ReaderBase):
    """Records of a fixed size.

    Args:
        record_bytes: the size of a record.
        header_bytes: left out at the beginning of each file.
        footer_bytes: left out at its end.
        hop_bytes: from the beginning of a record to that of the next; `record_bytes` by default.
        name: of the operation.
        encoding: `""`, `"ZLIB"` or `"GZIP"`.
    """

    def __init__(
        self, record_bytes: int, header_bytes: int | None = None, footer_bytes: int | None = None,
        hop_bytes: int | None = None, name: str | None = None, encoding: str | None = None,
    ) -> None:  # fmt: skip
        sizes = {
            "record_bytes": int(record_bytes),
            "header_bytes": int(header_bytes or 0),
            "footer_bytes": int(footer_bytes or 0),
            "hop_bytes": int(hop_bytes or 0),
        }
        for role, size in sizes.items():
            if size < (role == "record_bytes"):
                text = f"expected {role} >= {int(role == 'record_bytes')}, got {size}"
                raise fail(ArgumentError, f"FixedLengthRecordReader: {text}")
        if (encoding or "") not in ("", "ZLIB", "GZIP"):
            text = f"expected encoding '', 'ZLIB' or 'GZIP', got {encoding!r}"
            raise fail(ArgumentError, f"FixedLengthRecordReader: {text}")
        self._make("FixedLengthRecordReader", name, **sizes, encoding=encoding or "")


class TFRecordReader(ReaderBase):
    """Records of TFRecord files.

    Args:
        name: of the operation.
        options: a `TFRecordOptions`, or its compression.
    """

    def __init__(self, name: str | None = None, options: Any = None) -> None:
        text = TFRecordOptions.get_compression_type_string(options)
        self._make("TFRecordReader", name, compression_type=text)


class IdentityReader(ReaderBase):
    """Names of the queue themselves, as key and value.

    Args:
        name: of the operation.
    """

    def __init__(self, name: str | None = None) -> None:
        self._make("IdentityReader", name)
