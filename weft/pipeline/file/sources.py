"""Pipelines that read files, as class methods."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from weft.errors import ArgumentError, DataError
from weft.formats import image
from weft.formats.idx import read_idx
from weft.pipeline.file.archive import Archive
from weft.pipeline.file.files import Files, found_paths, name_of
from weft.pipeline.file.parquet import KEPT_BYTES, Groups, Table
from weft.pipeline.file.record import Chunks, Records
from weft.pipeline.file.table import Column, Layout, Rows
from weft.pipeline.file.text import Lines
from weft.pipeline.mapping import Map
from weft.pipeline.nested import Interleave
from weft.pipeline.source import Items, Slices
from weft.pipeline.stage import Cursor, Stage
from weft.pipeline.transformable import Transformable


class FileSources(Transformable):
    """Class methods that make pipelines from files.

    Files are names, patterns such as `train-*.tfrecord`, lists of these, or a pipeline of names.
    With `num_parallel_reads`, that many files are interleaved, each read by a thread.
    """

    @classmethod
    def _of_files(
        cls, files: Any, reader: Callable[[str], Cursor], name: str, parallel: int | None
    ) -> Self:
        if isinstance(files, Transformable):
            opened = functools.partial(_one, reader, name)
            return cls(Interleave(files.stage, opened, parallel or 1, 1, parallel))
        paths = found_paths(files, name)
        if parallel is None or parallel == 1:
            return cls(Files(paths, reader, name))
        opened = functools.partial(_one, reader, name)
        return cls(Interleave(Items(paths), opened, parallel, 1, parallel))

    @classmethod
    def list_files(
        cls, file_pattern: Any, shuffle: bool | None = None, seed: int | None = None
    ) -> Self:
        """The names of files that match patterns, shuffled in each epoch unless `shuffle` is False.

        Args:
            file_pattern: a pattern as of `glob`, or several.
            shuffle: whether each epoch has an order of its own.
            seed: of the orders.

        Raises:
            DataError: nothing matches.
        """
        names = cls(Items(found_paths(file_pattern, "list_files")))
        return names if shuffle is False else names.shuffle(1, seed)

    @classmethod
    def text_lines(
        cls, files: Any, compression_type: str | None = "", num_parallel_reads: int | None = None
    ) -> Self:
        """The lines of text files (UTF-8, plain or "GZIP"), without line ends.

        Args:
            files: a path or several.
            compression_type: `"GZIP"`, or none.
            num_parallel_reads: how many files are read at the same time, in turn.
        """
        reader = functools.partial(Lines, compression=compression_type or "")
        return cls._of_files(files, reader, "text_lines", num_parallel_reads)

    @classmethod
    def tfrecords(
        cls, files: Any, compression_type: str | None = "", num_parallel_reads: int | None = None
    ) -> Self:
        """The records of TFRecord files as bytes, checksums verified.

        Args:
            files: a path or several.
            compression_type: `"GZIP"`, or none.
            num_parallel_reads: how many files are read at the same time, in turn.
        """
        reader = functools.partial(Records, compression=compression_type or "")
        return cls._of_files(files, reader, "tfrecords", num_parallel_reads)

    @classmethod
    def fixed_length_records(
        cls, files: Any, record_bytes: int, header_bytes: int = 0, footer_bytes: int = 0,
        compression_type: str | None = "", num_parallel_reads: int | None = None,
    ) -> Self:  # fmt: skip
        """Records of `record_bytes` bytes between a header and a footer.

        Args:
            files: a path or several.
            record_bytes: the size of a record.
            header_bytes: what is left out at the beginning of each file.
            footer_bytes: what is left out at its end.
            compression_type: `"GZIP"`, or none; sizes are then those of what is decompressed.
            num_parallel_reads: how many files are read at the same time, in turn.
        """
        if record_bytes < 1 or min(header_bytes, footer_bytes) < 0:
            got = f"{record_bytes}, {header_bytes} and {footer_bytes}"
            text = "record_bytes of 1 or more, header_bytes and footer_bytes of 0 or more"
            raise ArgumentError(f"fixed_length_records: expected {text}, got {got}")
        reader = functools.partial(
            Chunks, size=record_bytes, header=header_bytes, footer=footer_bytes,
            compression=compression_type or "",
        )  # fmt: skip
        return cls._of_files(files, reader, "fixed_length_records", num_parallel_reads)

    @classmethod
    def csv(
        cls, files: Any, record_defaults: Sequence[Any], header: bool = False,
        field_delim: str = ",", use_quote_delim: bool = True, na_value: str = "",
        select_cols: Sequence[int] | None = None, compression_type: str | None = "",
    ) -> Self:  # fmt: skip
        """The rows of CSV files as tuples.

        Args:
            files: a path or several.
            record_defaults: for each column a type, if the field is required, or a default value.
            header: whether the first line of each file is left out.
            field_delim: the character between fields.
            use_quote_delim: whether double quotes enclose fields.
            na_value: what stands for an empty field.
            select_cols: the numbers of the columns to read; all by default.
            compression_type: `"GZIP"`, or none.
        """
        columns = [Column.of(default) for default in record_defaults]
        if not isinstance(field_delim, str) or len(field_delim) != 1:  # pyright: ignore
            raise ArgumentError(
                f"csv: expected a field_delim of one character, got {field_delim!r}"
            )
        select = None if select_cols is None else [operator.index(i) for i in select_cols]
        layout = Layout(columns, header, field_delim, use_quote_delim, na_value, select)
        reader = functools.partial(Rows, layout=layout, compression=compression_type or "")
        return cls._of_files(files, reader, "csv", None)

    @classmethod
    def tar_shards(cls, files: Any, num_parallel_reads: int | None = None) -> Self:
        """The samples of tar files as in WebDataset: `{"__key__": ..., "jpg": bytes, ...}`.

        Args:
            files: a path or several.
            num_parallel_reads: how many files are read at the same time, in turn.
        """
        return cls._of_files(files, Archive, "tar_shards", num_parallel_reads)

    @classmethod
    def parquet(
        cls, files: Any, columns: Sequence[str] | None = None,
        defaults: Mapping[str, Any] | None = None, row_groups: bool = False,
        kept_bytes: int = KEPT_BYTES,
    ) -> Self:  # fmt: skip
        """The rows of Parquet files as dicts, by index, so `shuffle` permutes all of them.

        A batch of shuffled rows reads every row group that has one of them. If the table is larger
        than `kept_bytes`, shuffle row groups first, then rows in a buffer: `parquet(files,
        row_groups=True).shuffle(1).unbatch().shuffle(10_000)`. Needs pyarrow.

        Args:
            files: names, patterns, or folders, whose `.parquet` files are all read.
            columns: the columns to read; all by default.
            defaults: values for empty fields, by column; without one, floats become NaN, strings
                None, and other columns raise an error.
            row_groups: yield row groups, as dicts of arrays, instead of rows.
            kept_bytes: memory for cached row groups.

        Raises:
            DataError: a file is damaged or has other columns than the first; while iterating, a row
                group is damaged or has empty values.
        """
        groups = Groups(parquet_paths(files), columns, defaults, kept_bytes)
        return cls(Table(groups, row_groups))

    @classmethod
    def idx(cls, *files: str | Path) -> Self:
        """The rows of IDX files (MNIST's format); several files are zipped."""
        if not files:
            raise ArgumentError("idx: expected at least one file, got none")
        arrays = [read_idx(name_of(path, "idx")) for path in files]
        return cls(Slices(tuple(arrays) if len(arrays) > 1 else arrays[0]))

    @classmethod
    def image_folder(
        cls, folder: str | Path, channels: int = 3, num_parallel_calls: int | None = None
    ) -> Self:
        """Pairs of an image (height, width, channels), uint8, and the number of its class.

        Subfolders are classes, in alphabetical order. Needs Pillow.

        Args:
            folder: the folder of the classes' folders.
            channels: 1 is gray, 3 is color.
            num_parallel_calls: the number of threads that read images.

        Raises:
            DataError: there are no images; while iterating, one is damaged.
        """
        paths, numbers, _ = listed_images(folder)
        pairs = cls(Items(list(zip(paths, numbers, strict=True))))
        load = functools.partial(_loaded, channels)
        functools.update_wrapper(load, _loaded)
        return pairs._with(Map(pairs.stage, load, num_parallel_calls, "image_folder"))

    @property
    def files(self) -> list[str]:
        """The files that this pipeline reads."""
        return [path for s in self.stage.walk() if isinstance(s, Files | Table) for path in s.paths]


def _one(reader: Callable[[str], Cursor], name: str, path: Any) -> Any:
    return _Holder(Files([path], reader, name))


def parquet_paths(files: Any) -> list[str]:
    """The files that match names or patterns; of a folder, all with the usual extension.

    Raises:
        DataError: a pattern matches nothing, or a folder has no such file.
    """
    paths: list[str] = []
    for name in found_paths(files, "parquet"):
        inside = sorted(map(str, Path(name).rglob("*.parquet")))
        if not inside and Path(name).is_dir():
            raise DataError(f"parquet: expected files *.parquet in {name}, found none")
        paths += inside or [name]
    return paths


class _Holder:
    """What `interleave` expects: an object with a stage."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage


def listed_images(folder: str | Path) -> tuple[list[str], list[int], list[str]]:
    """The images in the subfolders of a folder, their class numbers, and the classes' names.

    Raises:
        DataError: there is no such folder, or no image in it.
    """
    root = Path(name_of(folder, "image_folder"))
    if not root.is_dir():
        raise DataError(f"{root}: expected a folder with a subfolder of images for each class")
    classes = sorted(path.name for path in root.iterdir() if path.is_dir())
    paths: list[str] = []
    numbers: list[int] = []
    for number, name in enumerate(classes):
        inside = sorted(p for p in (root / name).rglob("*") if p.suffix.lower() in image.SUFFIXES)
        paths += map(str, inside)
        numbers += [number] * len(inside)
    if not paths:
        raise DataError(f"{root}: expected images in subfolders, found none in {classes}")
    return paths, numbers, classes


def _loaded(channels: int, path: str, number: int) -> tuple[Any, int]:
    return image.decode(Path(path).read_bytes(), channels, path), number
