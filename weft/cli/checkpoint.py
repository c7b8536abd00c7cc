"""`weft checkpoint ls|show|diff|verify|convert PATH`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Final

import numpy as np

from weft.cli.argument import sentence
from weft.errors import DataError
from weft.formats.any_file import Content, read_any, write_any
from weft.formats.checkpoint_folder.layout import MANIFEST, step_folders
from weft.formats.checkpoint_folder.manifest import read_manifest
from weft.formats.checkpoint_folder.reader import read_parts, readable
from weft.ir.shape import show as shape_text

Array = np.ndarray[Any, Any]
LONGEST_VALUE: Final = 60  # characters


def declare(one: argparse.ArgumentParser) -> None:
    """Adds the subcommands."""
    deeds = one.add_subparsers(dest="deed", required=True)
    for name, run, told in (
        ("ls", _list, "the checkpoints in a folder"),
        ("show", _show, "names, types and shapes"),
        ("verify", _verify, "read everything and compare checksums; 1 if anything is damaged"),
        ("diff", _diff, "what differs between two; 1 if anything does"),
        ("convert", _convert, "write the arrays to TARGET.safetensors or TARGET.index"),
    ):
        deed = deeds.add_parser(name, help=told, description=sentence(told))
        deed.add_argument("path", metavar="PATH", type=Path)
        if name in ("diff", "convert"):
            label = "OTHER" if name == "diff" else "TARGET"
            deed.add_argument("other", metavar=label, type=Path)
        deed.set_defaults(run=run)


def _list(given: argparse.Namespace) -> int:
    found, damaged = readable(given.path)
    if not found and not damaged:
        raise DataError(f"checkpoint: {given.path} has no checkpoints")
    for path, manifest in found:
        size = sum([file.stat().st_size for file in path.iterdir()])
        metrics = ", ".join([f"{name} {value:g}" for name, value in manifest.metrics.items()])
        ranks = len(manifest.files)
        parts = [f"{size / 1e6:.1f} MB", f"{ranks} ranks" if ranks > 1 else "", metrics]
        print(f"step {manifest.step}: {', '.join(filter(None, parts))}")
    for one in damaged:
        print(f"{one.path.name}: {one.error}")
    return 1 if damaged else 0


def _show(given: argparse.Namespace) -> int:
    content = read_any(given.path)
    for name, array in content.arrays.items():
        print(f"{name}: {_kind(array)}")
    for name, value in content.values.items():
        print(f"{name} = {value[:LONGEST_VALUE]}{'...' if len(value) > LONGEST_VALUE else ''}")
    size = sum([array.nbytes for array in content.arrays.values()])
    print(f"{content.format}: {len(content.arrays)} arrays, {size / 1e6:.1f} MB")
    return 0


def _kind(array: Array) -> str:
    return f"{array.dtype}{shape_text(array.shape)}"


def _verify(given: argparse.Namespace) -> int:
    path: Path = given.path
    if not path.is_dir():
        print(f"{path}: good: {_counted(read_any(path))}")
        return 0
    folders = [path] if (path / MANIFEST).exists() else step_folders(path)
    if not folders:
        raise DataError(f"checkpoint: {path} has no checkpoints")
    return max([_verified(folder) for folder in folders])


def _counted(content: Content) -> str:
    return f"{content.format}, {len(content.arrays)} arrays"


def _verified(folder: Path) -> int:
    try:
        parts = read_parts(folder, read_manifest(folder))
        read_any(folder)
    except DataError as error:
        print(f"{folder.name}: {error}")
        return 1
    print(f"{folder.name}: good: {sum([len(part.arrays) for part in parts])} arrays")
    return 0


def _diff(given: argparse.Namespace) -> int:
    one, other = read_any(given.path), read_any(given.other)
    lines = [f"- {name}" for name in one.arrays if name not in other.arrays]
    lines += [f"+ {name}" for name in other.arrays if name not in one.arrays]
    for name, array in one.arrays.items():
        if name in other.arrays:
            lines += _differences(name, array, other.arrays[name])
    for name, value in one.values.items():
        if other.values.get(name, value) != value:
            lines.append(f"{name} = {value[:LONGEST_VALUE]} | {other.values[name][:LONGEST_VALUE]}")
    print("\n".join(lines) or "equal")
    return 1 if lines else 0


def _differences(name: str, x: Array, y: Array) -> list[str]:
    if (x.dtype, x.shape) != (y.dtype, y.shape):
        return [f"{name}: {_kind(x)} | {_kind(y)}"]
    if x.tobytes() == y.tobytes():
        return []
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    with np.errstate(invalid="ignore"):
        distance = np.abs(x.astype(wide) - y.astype(wide))
    farthest = np.nan_to_num(distance, nan=np.inf).max()
    count = int(np.count_nonzero(x != y))
    return [f"{name}: {count} of {x.size} differ, at most by {farthest:g}"]


def _convert(given: argparse.Namespace) -> int:
    content = read_any(given.path)
    write_any(given.other, content.arrays)
    left = f"; {len(content.values)} values are not arrays: omitted" if content.values else ""
    print(f"{given.other}: {len(content.arrays)} arrays{left}")
    return 0
