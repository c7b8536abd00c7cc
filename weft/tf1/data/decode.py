"""Decoding of strings and bytes: records, CSV rows, images, raw memory.

It runs in Python before the program of a run; the results are fed to it.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from weft.errors import DataError, DTypeError
from weft.formats import image
from weft.formats.example_batch import ExampleParser
from weft.formats.example_spec import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    Ragged,
    RawFeature,
    VarLenFeature,
)
from weft.pipeline.file.table import Column, converted
from weft.tf1.framework.dtypes import as_dtype
from weft.tf1.framework.host import HostValue, delivered, string
from weft.tf1.framework.option import ANY, only
from weft.tf1.framework.sparse_tensor import SparseTensor

__all__ = [
    "decode_csv", "decode_image", "decode_jpeg", "decode_png", "decode_raw", "parse_example",
    "parse_single_example", "read_file",
]  # fmt: skip


def _texts(given: Any, what: str) -> HostValue:
    if isinstance(given, HostValue):
        return given
    texts = given if isinstance(given, list | tuple) else [given]
    if all([isinstance(text, str | bytes) for text in texts]):
        return HostValue(lambda: given)
    raise DTypeError(f"{what}: expected a tensor of tf.string, got {given!r:.80}")


def _bytes(x: Any) -> bytes:
    return x.encode() if isinstance(x, str) else bytes(x)


def _is_batch(value: HostValue) -> bool:
    return value.shape is not None and len(value.shape) == 1


def read_file(filename: Any, name: str | None = None) -> HostValue:
    """The contents of a file."""

    def read(path: Any) -> bytes:
        found = Path(path if isinstance(path, str) else path.decode())
        if not found.is_file():
            raise DataError(f"read_file: there is no file {found}")
        return found.read_bytes()

    value = HostValue(read, [_texts(filename, "read_file")], name or "ReadFile")
    value.shape = ()
    return value


def decode_raw(
    bytes: Any, out_type: Any, little_endian: bool = True, name: str | None = None
) -> Any:
    """Bytes reinterpreted as numbers; for a batch of equal lengths, one row each."""
    source = _texts(bytes, "decode_raw")
    kind = as_dtype(out_type)
    stored = kind.ir.numpy.newbyteorder("<" if little_endian else ">")

    def decoded(data: Any) -> Any:
        if isinstance(data, np.ndarray):
            return np.stack([np.frombuffer(_bytes(x), stored) for x in data])
        return np.frombuffer(_bytes(data), stored)

    dims = (None, None) if _is_batch(source) else (None,)
    return delivered(HostValue(decoded, [source]), kind, dims, name or "DecodeRaw")


def decode_image(
    contents: Any, channels: int | None = None, dtype: Any = np.uint8, name: str | None = None
) -> Any:
    """The pixels of an image file, (height, width, channels), uint8. Needs Pillow."""
    if as_dtype(dtype).ir.numpy != np.uint8:
        raise DTypeError(f"decode_image: expected dtype tf.uint8, got {dtype}; cast the result")
    value = HostValue(
        lambda data: image.decode(_bytes(data), channels or 0), [_texts(contents, "decode_image")]
    )
    return delivered(value, dtype, (None, None, channels or None), name or "DecodeImage")


def decode_png(
    contents: Any, channels: int = 0, dtype: Any = np.uint8, name: str | None = None
) -> Any:
    """See `decode_image`; the format is detected."""
    return decode_image(contents, channels, dtype, name or "DecodePng")


def decode_jpeg(contents: Any, channels: int = 0, name: str | None = None, **options: Any) -> Any:
    """See `decode_image`; the format is detected.

    Raises:
        ArgumentError: a `ratio` other than 1, or `acceptable_fraction` below 1.
    """
    only(
        "decode_jpeg", options, ratio=1, fancy_upscaling=ANY, try_recover_truncated=False,
        acceptable_fraction=1, dct_method=ANY,
    )  # fmt: skip
    return decode_image(contents, channels, np.uint8, name or "DecodeJpeg")


def decode_csv(
    records: Any, record_defaults: Sequence[Any], field_delim: str = ",",
    use_quote_delim: bool = True, name: str | None = None, na_value: str = "",
    select_cols: Sequence[int] | None = None,
) -> list[Any]:  # fmt: skip
    """The columns of CSV rows, one tensor each: numbers, or tf.string.

    Args:
        record_defaults: a column's default gives its type; a type without default is required.
    """
    read_row = _reader(field_delim, use_quote_delim)
    source = _texts(records, "decode_csv")
    columns = [_column(given) for given in record_defaults]

    def fields(text: Any) -> list[Any]:
        row = read_row(_bytes(text).decode())
        row = row if select_cols is None else [row[i] for i in select_cols]
        if len(row) != len(columns):
            raise DataError(f"decode_csv: expected {len(columns)} fields, got {len(row)}: {text!r}")
        return [
            converted(field, column, na_value, f"decode_csv, field {i}")
            for i, (field, column) in enumerate(zip(row, columns, strict=True))
        ]

    def rows(text: Any) -> list[Any]:
        if not isinstance(text, np.ndarray):
            return fields(text)
        return [list(column) for column in zip(*map(fields, text), strict=True)]

    table = HostValue(rows, [source])
    dims = (None,) if _is_batch(source) else ()
    found: list[Any] = []
    for number, column in enumerate(columns):
        part = table.part(lambda row, i=number: row[i])
        part.shape = dims
        is_text = column.kind.kind == "O"
        kind = column.kind
        found.append(part if is_text else delivered(part, kind, dims, name or "DecodeCSV"))
    return found


def _reader(delimiter: str, quotes: bool) -> Callable[[str], list[str]]:
    quoting = csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE
    return lambda text: next(csv.reader([text], delimiter=delimiter, quoting=quoting), [])


def _column(given: Any) -> Column:
    if given is string or (isinstance(given, list) and given and isinstance(given[0], str)):
        return Column(np.dtype(object), given[0] if isinstance(given, list) else None)
    return Column.of(given)


def parse_example(
    serialized: Any, features: Mapping[str, Any], name: str | None = None
) -> dict[str, Any]:
    """The features of a batch of serialized `tf.train.Example`s, one tensor each.

    A numeric `VarLenFeature` becomes a `SparseTensor` with one row per example.
    """
    return _parsed(_texts(serialized, "parse_example"), features, name, batch=True)


def parse_single_example(
    serialized: Any, features: Mapping[str, Any], name: str | None = None
) -> dict[str, Any]:
    """The features of a serialized `tf.train.Example`, one tensor each."""
    return _parsed(_texts(serialized, "parse_single_example"), features, name, batch=False)


def _parsed(
    source: HostValue, features: Mapping[str, Any], name: str | None, batch: bool
) -> dict[str, Any]:
    kinds = {key: _dtype(feature) for key, feature in features.items()}
    stored = {key: feature._replace(dtype=_stored(kinds[key])) for key, feature in features.items()}
    for key, feature in stored.items():
        _check_feature(key, feature, kinds[key])
    parser = ExampleParser(stored)

    def parse(records: Any) -> dict[str, Any]:
        if batch:
            return dict(parser([_bytes(r) for r in records]))
        found = parser([_bytes(records)])
        return {key: x if isinstance(x, Ragged) else x[0] for key, x in found.items()}

    parsed = HostValue(parse, [source])
    found: dict[str, Any] = {}
    for key, feature in stored.items():
        part = parsed.part(lambda row, key=key: row[key])
        if isinstance(feature, VarLenFeature):
            found[key] = _sparse(part, kinds[key], batch, name or "ParseExample")
            continue
        steps = (None,) if isinstance(feature, FixedLenSequenceFeature) else ()
        part.shape = (*((None,) if batch else ()), *steps, *feature.shape)
        found[key] = part
        if kinds[key] is not string:
            found[key] = delivered(part, kinds[key], part.shape, name or "ParseExample")
    return found


def _check_feature(key: str, feature: Any, kind: Any) -> None:
    known = FixedLenFeature | FixedLenSequenceFeature | RawFeature | VarLenFeature
    if not isinstance(feature, known):
        text = f"expected a FixedLenFeature or the like for {key!r}, got {type(feature).__name__}"
        raise DTypeError(f"parse_example: {text}")
    if isinstance(feature, VarLenFeature) and kind is string:
        text = f"expected numbers for {key!r}, got VarLenFeature(tf.string)"
        raise DTypeError(
            f"parse_example: {text}: sparse tensors hold no texts, FixedLenSequenceFeature does"
        )


def _sparse(ragged: HostValue, kind: Any, batch: bool, name: str) -> SparseTensor:
    """Rows of different lengths as a sparse tensor; for a single example, its one row."""
    rank = 2 if batch else 1

    def indices(rows: Ragged) -> Any:
        ends = np.cumsum(rows.lengths)
        number = np.repeat(np.arange(len(rows.lengths)), rows.lengths)
        place = np.arange(len(rows.values)) - (ends - rows.lengths)[number]
        return np.stack([number, place][2 - rank :], axis=1)

    def dense_shape(rows: Ragged) -> Any:
        sizes = [len(rows.lengths), int(rows.lengths.max(initial=0))]
        return np.array(sizes[2 - rank :], np.int64)

    int64 = as_dtype(np.int64)
    return SparseTensor(
        delivered(ragged.part(indices), int64, (None, rank), f"{name}/indices"),
        delivered(ragged.part(lambda rows: rows.values), kind, (None,), f"{name}/values"),
        delivered(ragged.part(dense_shape), int64, (rank,), f"{name}/shape"),
    )


def _dtype(feature: Any) -> Any:
    return string if feature.dtype is string else as_dtype(feature.dtype)


def _stored(kind: Any) -> Any:
    return "bytes" if kind is string else kind.ir.name
