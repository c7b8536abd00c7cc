"""Decoding of strings and bytes: records, CSV rows, images, raw memory.

It runs in Python between the programs of a run.
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
    sizes,
)
from weft.ops.refusal import guard
from weft.pipeline.file.table import Column, converted
from weft.tf1.framework.convert import convert_to_tensor, is_tensor
from weft.tf1.framework.dtypes import as_dtype, string
from weft.tf1.framework.host import host_op, host_tensor, is_text
from weft.tf1.framework.option import ANY, only
from weft.tf1.framework.sparse_tensor import SparseTensor
from weft.tf1.framework.tensor import Tensor

__all__ = [
    "decode_csv", "decode_image", "decode_jpeg", "decode_png", "decode_raw", "parse_example",
    "parse_single_example", "read_file",
]  # fmt: skip


def _texts(given: Any, what: str) -> Tensor:
    if is_tensor(given) or is_text(given):
        found = convert_to_tensor(given)
        if found.dtype.base_dtype is string:
            return found
    raise DTypeError(f"{what}: expected a tensor of tf.string, got {given!r:.80}")


def _dims(source: Tensor) -> tuple[int | None, ...] | None:
    return source.shape.as_dims()


def read_file(filename: Any, name: str | None = None) -> Tensor:
    """The contents of a file."""

    def read(path: Any) -> bytes:
        found = Path(path[()].decode())
        if not found.is_file():
            raise DataError(f"read_file: there is no file {found}")
        return found.read_bytes()

    return host_tensor("ReadFile", [_texts(filename, "read_file")], read, string, (), name)


def decode_raw(
    bytes: Any, out_type: Any, little_endian: bool = True, name: str | None = None
) -> Any:
    """Bytes reinterpreted as numbers; for a batch of equal lengths, one row each."""
    source = _texts(bytes, "decode_raw")
    kind = as_dtype(out_type)
    stored = kind.ir.numpy.newbyteorder("<" if little_endian else ">")

    def decoded(data: Any) -> Any:
        rows = [np.frombuffer(x, stored) for x in data.ravel()]
        if len({len(row) for row in rows}) > 1:
            raise DataError("decode_raw: expected texts of equal lengths")
        return np.array(rows, stored).reshape(*data.shape, -1)

    dims = _dims(source)
    shape = None if dims is None else (*dims, None)
    return host_tensor("DecodeRaw", [source], decoded, kind, shape, name)


def decode_image(
    contents: Any, channels: int | None = None, dtype: Any = np.uint8, name: str | None = None
) -> Any:
    """The pixels of an image file, (height, width, channels), uint8. Needs Pillow."""
    if as_dtype(dtype).ir.numpy != np.uint8:
        raise DTypeError(f"decode_image: expected dtype tf.uint8, got {dtype}; cast the result")
    source, shape = _texts(contents, "decode_image"), (None, None, channels or None)
    pixels = lambda data: image.decode(data[()], channels or 0)  # noqa: E731
    return host_tensor("DecodeImage", [source], pixels, dtype, shape, name)


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
        row = read_row(text.decode())
        row = row if select_cols is None else [row[i] for i in select_cols]
        if len(row) != len(columns):
            raise DataError(f"decode_csv: expected {len(columns)} fields, got {len(row)}: {text!r}")
        return [
            converted(field, column, na_value, f"decode_csv, field {i}")
            for i, (field, column) in enumerate(zip(row, columns, strict=True))
        ]

    def table(text: Any) -> Any:
        rows = [fields(x) for x in text.ravel()]
        found = [
            _column_array([row[i] for row in rows], column, text.shape)
            for i, column in enumerate(columns)
        ]
        return found if len(found) != 1 else found[0]

    kinds = [string if c.kind.kind == "O" else c.kind for c in columns]
    shapes = [_dims(source)] * len(columns)
    return host_op("DecodeCSV", [source], table, kinds, shapes, name).outputs


def _column_array(values: list[Any], column: Column, shape: tuple[int, ...]) -> Any:
    array = np.empty(len(values), column.kind)
    array[:] = values
    return array.reshape(shape)


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

    A `VarLenFeature` becomes a `SparseTensor` with one row per example.
    """
    return _parsed(_texts(serialized, "parse_example"), features, name, batch=True)


def parse_single_example(
    serialized: Any, features: Mapping[str, Any], name: str | None = None
) -> dict[str, Any]:
    """The features of a serialized `tf.train.Example`, one tensor each."""
    return _parsed(_texts(serialized, "parse_single_example"), features, name, batch=False)


Made = Callable[[Any], Any]


def _parsed(
    source: Tensor, features: Mapping[str, Any], name: str | None, batch: bool
) -> dict[str, Any]:
    kinds = {key: _dtype(feature) for key, feature in features.items()}
    stored = {key: feature._replace(dtype=_stored(kinds[key])) for key, feature in features.items()}
    for key, feature in stored.items():
        _check_feature(key, feature)
    parser = ExampleParser(stored)
    outputs: list[tuple[str, Made, Any, Any]] = []  # key, result, type, shape
    for key, feature in stored.items():
        if isinstance(feature, VarLenFeature):
            outputs += [(key, *part) for part in _sparse(kinds[key], batch)]
            continue
        steps = (None,) if isinstance(feature, FixedLenSequenceFeature) else ()
        shape = (*((None,) if batch else ()), *steps, *sizes(feature.shape))
        outputs.append((key, lambda row: row, kinds[key], shape))

    def parse(records: Any) -> Any:
        rows = parser(records.ravel().tolist())
        single = {key: x if isinstance(x, Ragged) else x[0] for key, x in rows.items()}
        found = [make((rows if batch else single)[key]) for key, make, _, _ in outputs]
        return found if len(found) != 1 else found[0]

    dtypes, shapes = [kind for _, _, kind, _ in outputs], [shape for *_, shape in outputs]
    op = host_op("ParseExample", [source], parse, dtypes, shapes, name)
    made: dict[str, list[Tensor]] = {}
    for (key, *_), tensor in zip(outputs, op.outputs, strict=True):
        made.setdefault(key, []).append(tensor)
    return {key: x[0] if len(x) == 1 else SparseTensor(*x) for key, x in made.items()}


def _check_feature(key: str, feature: Any) -> None:
    known = FixedLenFeature | FixedLenSequenceFeature | RawFeature | VarLenFeature
    if not isinstance(feature, known):
        text = f"expected a FixedLenFeature or the like for {key!r}, got {type(feature).__name__}"
        raise DTypeError(f"parse_example: {text}")


def _sparse(kind: Any, batch: bool) -> list[tuple[Made, Any, Any]]:
    """Rows of different lengths as a sparse tensor's parts; for a single example, its one row."""
    rank = 2 if batch else 1

    def indices(rows: Ragged) -> Any:
        ends = np.cumsum(rows.lengths)
        number = np.repeat(np.arange(len(rows.lengths)), rows.lengths)
        place = np.arange(len(rows.values)) - (ends - rows.lengths)[number]
        return np.stack([number, place][2 - rank :], axis=1)

    def dense_shape(rows: Ragged) -> Any:
        sizes = [len(rows.lengths), int(rows.lengths.max(initial=0))]
        return np.array(sizes[2 - rank :], np.int64)

    return [
        (indices, np.int64, (None, rank)),
        (lambda rows: rows.values, kind, (None,)),
        (dense_shape, np.int64, (rank,)),
    ]


def _dtype(feature: Any) -> Any:
    return as_dtype(feature.dtype)


def _stored(kind: Any) -> Any:
    return "bytes" if kind is string else kind.ir.name


guard(globals())
