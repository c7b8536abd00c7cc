"""Tables from CSV files: columns by name."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

from weft.errors import DataError

Array = np.ndarray[Any, Any]


def read_csv(path: str | Path, delimiter: str = ",", missing: float = np.nan) -> dict[str, Array]:
    """The columns of a CSV file whose first line has their names.

    Columns of integers are int64, of other numbers float32 with `missing` for empty fields; all
    others are strings. `Dataset.from_tensor_slices` takes the result.

    Args:
        path: the file.
        delimiter: what separates fields.
        missing: the number for empty fields.

    Raises:
        DataError: there are no rows, or a row has another number of fields.
    """
    with open(path, newline="", encoding="utf-8") as stream:
        rows = csv.reader(stream, delimiter=delimiter)
        names = next(rows, [])
        columns: list[list[str]] = [[] for _ in names]
        for row in rows:
            if row and len(row) != len(names):
                text = f"expected {len(names)} fields, got {len(row)}"
                raise DataError(f"{path}, line {rows.line_num}: {text}")
            for column, field in zip(columns, row, strict=False):
                column.append(field)
    if not columns or not columns[0]:
        raise DataError(f"{path}: expected a line of names and at least one row")
    return {name: _typed(c, missing) for name, c in zip(names, columns, strict=True)}


def _typed(column: list[str], missing: float) -> Array:
    for kind, read in ((np.int64, int), (np.float32, float)):
        empty = [missing] if read is float else []
        try:
            return np.array([read(f) if f.strip() or not empty else missing for f in column], kind)
        except (ValueError, OverflowError):
            continue  # not all are such numbers
    return np.array(column, object)
