"""The manifest of a checkpoint, its last file: what belongs to it, and the digest of it all.

Two lines: JSON, and the SHA-256 of the first line. The digests of the files cover their checksums,
so that every byte of a checkpoint is known from the manifest.
"""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any, Final, NamedTuple

from weft.checkpoint.file import open_file, write_file
from weft.checkpoint.folder.layout import MANIFEST, step_of
from weft.errors import DataError, NewerFormatError

FORMAT: Final = 1
LONGEST: Final = 10_000_000  # bytes


class Manifest(NamedTuple):
    """What a checkpoint says of itself.

    Attributes:
        serial: grows with every save to the folder, also after going back to an earlier step.
        files: digests by the names of the files; one file a rank.
        metrics: what the user told of this step.
        save: names the call of `save`, the same on all ranks.
    """

    step: int
    serial: int
    files: dict[str, str]
    metrics: dict[str, float]
    save: str = ""


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Commit a checkpoint.

    Raises:
        OSError: the folder is full, or may not be written to.
    """
    metrics = {name: repr(value) for name, value in manifest.metrics.items()}  # JSON has no NaN
    fields = {"format": FORMAT, **manifest._asdict(), "metrics": metrics}
    text = json.dumps(fields, separators=(",", ":")).encode()
    digest = hashlib.sha256(text).hexdigest().encode()
    write_file(folder / MANIFEST, [text, b"\n", digest, b"\n"])


def read_manifest(folder: Path) -> Manifest:
    """What the checkpoint in a folder says of itself.

    Raises:
        DataError: it is not committed, or damaged.
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
        raise DataError(f"checkpoint: {path} is damaged: its text is not the one saved")
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
    """Those with a value of a metric, the latest of equal ones first; NaN is no value."""
    found = [m for m in manifests if not math.isnan(m.metrics.get(metric, math.nan))]
    sign = 1 if largest else -1
    return sorted(found, key=lambda m: (sign * m.metrics[metric], m.serial), reverse=True)
