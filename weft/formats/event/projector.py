"""Embeddings for TensorBoard's projector: text tables and an image, in separate files."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from weft.errors import ShapeError
from weft.formats.event.picture import grid, png

LARGEST_SPRITE: Final = 8192  # pixels per side, TensorBoard's limit
CONFIG: Final = "projector_config.pbtxt"


def write_embedding(
    folder: Path, place: str, name: str, vectors: np.ndarray, metadata: Sequence[Any] | None,
    header: Sequence[str] | None, images: np.ndarray | None,
) -> None:  # fmt: skip
    """Writes vectors with their metadata and images, and lists them in the folder.

    Args:
        folder: the folder of the events.
        place: its subfolder for these files.
        name: their name in TensorBoard.
        vectors: `[number, size]`.
        metadata: a string per vector, or several with a `header` per column.
        header: names of the columns.
        images: bytes, `[number, height, width, channels]`.

    Raises:
        ShapeError: there is not one string or image per vector, or images are too large.
    """
    if vectors.ndim != 2 or not vectors.size:
        raise ShapeError(f"add_embedding: expected mat [number, size], got {vectors.shape}")
    for what, given in {"metadata": metadata, "label_img": images}.items():
        if given is not None and len(given) != len(vectors):
            raise ShapeError(
                f"add_embedding: {what}: expected {len(vectors)}, one per vector, got {len(given)}"
            )
    target = folder / place
    target.mkdir(parents=True, exist_ok=True)
    paths = {"tensor_name": name, "tensor_path": f"{place}/tensors.tsv"}
    if metadata is not None:
        rows = ([list(header)] if header else []) + [_columns(row, header) for row in metadata]
        _write_table(target / "metadata.tsv", rows)
        paths["metadata_path"] = f"{place}/metadata.tsv"
    sprite, sides = "", ()
    if images is not None:
        (target / "sprite.png").write_bytes(_sprite(images))
        sprite, sides = f"{place}/sprite.png", (images.shape[2], images.shape[1])
    _write_table(target / "tensors.tsv", vectors.tolist())
    with open(folder / CONFIG, "a") as file:
        file.write(embedding_text(paths, sprite, sides))


def embedding_text(paths: Mapping[str, str], sprite: str, sides: Sequence[int]) -> str:
    """One entry of the projector's file.

    Args:
        paths: `tensor_name` and files, by TensorBoard's names.
        sprite: the file of an image of small images; none if empty.
        sides: width and height of a small one.
    """
    lines = [f'{key}: "{_quoted(value)}"' for key, value in paths.items()]
    if sprite:
        lines += ["sprite {", f'image_path: "{_quoted(sprite)}"']
        lines += [f"single_image_dim: {side}" for side in sides]
        lines.append("}")
    return "embeddings {\n" + "".join([f"{line}\n" for line in lines]) + "}\n"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _columns(row: Any, header: Sequence[str] | None) -> list[Any]:
    return list(row) if header else [row]


def _write_table(path: Path, rows: Sequence[Sequence[Any]]) -> None:
    with open(path, "w", encoding="utf-8") as file:
        for row in rows:
            cells = [str(cell).replace("\t", " ").replace("\n", " ") for cell in row]
            file.write("\t".join(cells) + "\n")


def _sprite(images: np.ndarray) -> bytes:
    side = math.ceil(math.sqrt(len(images)))
    height, width = images.shape[1] * side, images.shape[2] * side
    if max(height, width) > LARGEST_SPRITE:
        raise ShapeError(
            f"add_embedding: label_img: {len(images)} images make one of {height} x {width} "
            f"pixels: expected {LARGEST_SPRITE} at most; give fewer or smaller ones"
        )
    padded = np.zeros((side * side, *images.shape[1:]), images.dtype)
    padded[: len(images)] = images
    return png(grid(padded, side))
