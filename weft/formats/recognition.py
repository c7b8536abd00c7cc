"""Recognizes files by their first bytes, for messages about files of other formats."""

from __future__ import annotations

from io import BufferedReader
from typing import Final, NamedTuple

from weft.formats.tensorflow.table import MAGIC


class Format(NamedTuple):
    """A format that `load` does not read.

    Attributes:
        begin: the first bytes of its files, from `place` on.
        told: what the file is, and what reads it.
    """

    begin: bytes
    told: str
    place: int = 0


_FORMATS: Final = (
    Format(b"\x89HDF\r\n\x1a\n", "an HDF5 file: Keras' load_weights or load_model reads Keras' "
           "files, h5py others"),
    Format(b"\x93NUMPY", "a NumPy .npy file: use numpy.load"),
    Format(b"version https://git-lfs", "a pointer of Git LFS, not the file itself: git lfs pull"),
    Format(b"GGUF", "a GGUF file, which Weft does not read"),
    Format(b"PAR1", "a Parquet file: weft.data.ParquetDataset reads it"),
    Format(b"\x1f\x8b", "compressed by gzip: unpack it first"),
    Format(b"\xfd7zXZ\x00", "compressed by xz: unpack it first"),
    Format(b"(\xb5/\xfd", "compressed by zstd: unpack it first"),
    Format(b"BZh", "compressed by bzip2: unpack it first"),
    Format(b"ustar", "a tar archive: unpack it; torch.save wrote such files before PyTorch 0.2, "
           "load and save those in PyTorch", 257),
    Format(b"<", "an HTML or XML page, not a file of tensors: was the download refused?"),
    Format(b"{", "JSON, which holds no tensors; an index of several safetensors files names them"),
    *(
        Format(bytes([0x80, version]), "a pickle: Weft runs none, and reads only those of "
               "torch.save; save tensors by torch.save or weft.save")
        for version in range(2, 6)
    ),
)  # fmt: skip
_LONGEST: Final = max(len(kind.begin) + kind.place for kind in _FORMATS)
_TABLE: Final = MAGIC.to_bytes(8, "little")  # at the end


def recognized(file: BufferedReader, size: int) -> str:
    """What a file of another format is, and what reads it; empty if it is not recognized."""
    file.seek(0)
    begin = file.read(_LONGEST)
    for kind in _FORMATS:
        if begin.startswith(kind.begin, kind.place):
            return kind.told
    file.seek(max(0, size - len(_TABLE)))
    if file.read() == _TABLE:
        return "a TensorFlow checkpoint: tf1.train.load_checkpoint reads it by its prefix, and " \
               "`weft checkpoint convert` converts it"  # fmt: skip
    return ""
