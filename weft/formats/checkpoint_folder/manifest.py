"""The manifest of a checkpoint, its last file: the checkpoint's files with digests.

Two lines: JSON, and the SHA-256 of the first line. The digests of the files cover their checksums,
so the manifest verifies every byte of a checkpoint.
"""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any, Final, NamedTuple

from weft.errors import DataError, NewerFormatError
from weft.formats.atomic_file import open_file, write_file
from weft.formats.checkpoint_folder.layout import MANIFEST, step_of

FORMAT: Final = 1
LONGEST: Final = 10_000_000  # bytes


class Manifest(NamedTuple):
    """The description of a checkpoint.

    Attributes:
        serial: increases with every save to the folder, also after going back to an earlier step.
        files: digests by file name; one file per rank.
        metrics: the user's metrics of this step.
        save: identifies the call of `save`, the same on all ranks.
    """

    step: int
    serial: int
    files: dict[str, str]
    metrics: dict[str, float]
    save: str = ""


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Commits a checkpoint.

    Raises:
        OSError: the folder is full, or may not be written to.
    """
    metrics = {name: repr(value) for name, value in manifest.metrics.items()}  # JSON has no NaN
    fields = {"format": FORMAT, **manifest._asdict(), "metrics": metrics}
    text = json.dumps(fields, separators=(",", ":")).encode()
    digest = hashlib.sha256(text).hexdigest().encode()
    write_file(folder / MANIFEST, [text, b"\n", digest, b"\n"])


def read_manifest(folder: Path) -> Manifest:
    """Reads the manifest of the checkpoint in a folder.

    Raises:
        DataError: the checkpoint is not committed, or damaged.
        NewerFormatError: a later version of Weft wrote it.
    """
    path = folder / MANIFEST
    try:
        with open_file(path) as file:
            raw = file.read(LONGEST + 1)
    except FileNotFoundError:
        raise DataError(f"checkpoint: {folder} is not complete: it has no {MANIFEST}") from None
    text, _, digest = raw.partition(b"\n")
    if digest != hashlib.sha256(text).hexdigest().encode() + b"\n":
        raise DataError(f"checkpoint: {path} is damaged: its text does not match its digest")
    fields = json.loads(text)
    if fields["format"] > FORMAT:
        raise NewerFormatError(
            f"checkpoint: {folder} has format {fields['format']}: expected {FORMAT} at most; "
            "a later version of Weft wrote it, and reads it"
        )
    return _of_step(folder, fields)


def _of_step(folder: Path, fields: dict[str, Any]) -> Manifest:
    del fields["format"]
    manifest = Manifest(**fields)
    if manifest.step != step_of(folder):
        raise DataError(f"checkpoint: {folder} is damaged: it holds step {manifest.step}")
    return manifest._replace(metrics={k: float(v) for k, v in manifest.metrics.items()})


def best_first(manifests: list[Manifest], metric: str, largest: bool) -> list[Manifest]:
    """Manifests with a value of a metric, best first, later ones before equal ones; NaN is none."""
    found = [m for m in manifests if not math.isnan(m.metrics.get(metric, math.nan))]
    sign = 1 if largest else -1
    return sorted(found, key=lambda m: (sign * m.metrics[metric], m.serial), reverse=True)
