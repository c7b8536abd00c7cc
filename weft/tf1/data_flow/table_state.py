"""What `Saver` saves of tables that steps change: their keys and values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from weft.errors import DataError
from weft.tf1.creation import placeholder
from weft.tf1.data_flow.handle import Handle
from weft.tf1.framework.default_graph import add_to_collection
from weft.tf1.framework.graph import name_scope
from weft.tf1.framework.tensor import Tensor

Array = np.ndarray[Any, Any]
SAVEABLE_OBJECTS: Final = "saveable_objects"


class TableState:
    """The operations that read and replace the contents of a table.

    Args:
        handle: of the table.
        exported: its keys and values.

    Attributes:
        name: under which they are saved.
    """

    def __init__(self, handle: Handle, exported: tuple[Tensor, Tensor]) -> None:
        self.name: Final = handle.tensor.op.name
        self._exported = exported
        with name_scope(f"{self.name}_restore/"):
            self._given = [placeholder(x.dtype, x.shape) for x in exported]
            self._replace = handle.call("LookupTableImportV2", "import", self._given)
        add_to_collection(SAVEABLE_OBJECTS, self)

    @property
    def names(self) -> list[str]:
        """The names of the arrays; texts are bytes and lengths."""
        return [name for part, x in self._parts() for name in _names(part, x)]

    def _parts(self) -> Iterator[tuple[str, Tensor]]:
        return zip((f"{self.name}-keys", f"{self.name}-values"), self._exported, strict=True)

    def saved(self, session: Any) -> dict[str, Array]:
        """The contents, by the names of arrays."""
        found: dict[str, Array] = {}
        for (part, x), array in zip(self._parts(), session.run(self._exported), strict=True):
            found.update(zip(_names(part, x), _plain(array), strict=True))
        return found

    def restore(self, session: Any, arrays: Mapping[str, Array]) -> None:
        """Replace the contents."""
        whole = [
            _joined(part, [arrays[name] for name in _names(part, x)]) for part, x in self._parts()
        ]
        session.run(self._replace, dict(zip(self._given, whole, strict=True)))


def _names(part: str, x: Tensor) -> list[str]:
    return [part, f"{part}-lengths"] if x.dtype.ir.is_hosted else [part]


def _plain(array: Array) -> list[Array]:
    if array.dtype != object:
        return [array]
    texts: list[bytes] = array.ravel().tolist()
    lengths = np.array([len(t) for t in texts], np.int64).reshape(array.shape)
    return [np.frombuffer(b"".join(texts), np.uint8), lengths]


def _joined(part: str, arrays: list[Array]) -> Array:
    if len(arrays) == 1:
        return arrays[0]
    data, lengths = arrays[0].tobytes(), arrays[1]
    ends = np.cumsum(lengths.ravel())
    if int(lengths.sum()) != len(data) or (lengths < 0).any():
        raise DataError(f"restore: the texts of {part} are not as long as their lengths tell")
    found = np.empty(lengths.size, object)
    found[:] = [data[end - n : end] for end, n in zip(ends, lengths.ravel(), strict=True)]
    return found.reshape(lengths.shape)
