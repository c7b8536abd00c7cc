"""Caches values computed from parameters and buffers alone, until one of these is changed.

Every change of a tensor has to be noticed. In-place changes, optimizer steps and `load_state_dict`
give it another value; an assignment to some elements bumps its version counter. Memory that NumPy
or another library may write to counts as changed at every run.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from weft.eager.record.pending.lazy import Alias, Lazy
from weft.eager.record.recognition.structure import Structure

MOST_KEEPING: Final = 4
"""Programs with cached values; if shapes change, each shape would cache its own weights."""


class Keeper(Protocol):
    """The interface of a tensor that the cache needs; see `weft.eager.tensor.handle`."""

    @property
    def version(self) -> int:
        """The version counter: how often it was changed in place."""
        ...

    def tells_changes(self) -> bool:
        """Whether every change gives it another value or version."""
        ...

    def is_still(self, lazy: Lazy, version: int) -> bool:
        """Whether it still holds this value in this version, and reports changes."""
        ...


def lasting_leaves(structure: Structure) -> tuple[int, ...]:
    """Positions of the leaves that rarely change; none beside gradients: training changes them."""
    if any([record.plan.follows for record in structure.records]):
        return ()
    taken = set(structure.homes)
    return tuple(
        [i for i, leaf in enumerate(structure.leaves) if i not in taken and _is_lasting(leaf)]
    )


def _is_lasting(leaf: Lazy) -> bool:
    handle = _keeper(leaf)
    return handle is not None and getattr(handle, "lasting", False)


def _keeper(leaf: Lazy) -> Keeper | None:
    """The tensor whose version counter reports every change of a leaf, if there is one."""
    handle = None if leaf.owner is None or type(leaf) is Alias else leaf.owner()
    return handle if handle is not None and handle.tells_changes() else None


class Watch:
    """Tells whether leaves have changed since it was last asked.

    Args:
        positions: which of a structure's leaves to look at.
        release: called when what was computed from them is stale.
    """

    def __init__(self, positions: Sequence[int], release: Callable[[], None]) -> None:
        self._positions = positions
        self._release = release
        self._seen: list[tuple[weakref.ref[Keeper], int, int]] = []
        """For each leaf the tensor that holds it, its version, and the identity of its value."""
        self._first: weakref.ref[Keeper] | None = None

    def holds(self, leaves: Sequence[Lazy]) -> bool:
        """Whether no leaf has changed since `is_fresh` was last asked."""
        for i, (owner, version, identity) in zip(self._positions, self._seen, strict=False):
            leaf, handle = leaves[i], owner()
            if handle is None or id(leaf) != identity or not handle.is_still(leaf, version):
                return False
        return bool(self._seen)

    def is_fresh(self, leaves: Sequence[Lazy], still: bool = False) -> bool:
        """Whether no leaf has changed; `still` says that this is known already."""
        if still and self._seen:
            return True
        if self.holds(leaves):
            return True
        self._look([leaves[i] for i in self._positions])
        _recent[self] = None
        _recent.move_to_end(self)
        if len(_recent) > MOST_KEEPING:
            _recent.popitem(last=False)[0].end()
        return False

    def _look(self, leaves: Sequence[Lazy]) -> None:
        """Remember the leaves, unless one of them may change without notice."""
        keepers = [_keeper(leaf) for leaf in leaves]
        self._seen, self._first = [], None
        for leaf, keeper in zip(leaves, keepers, strict=True):
            if keeper is None:
                self._seen = []
                return
            self._seen.append((weakref.ref(keeper), keeper.version, id(leaf)))
        if keepers[0] is not None:
            self._first = weakref.ref(keepers[0], self._gone)

    def _gone(self, _: Any) -> None:
        """A tensor is gone, and most likely the whole model with it."""
        self.end()

    def end(self) -> None:
        """Forget everything, until asked again."""
        self._seen, self._first = [], None
        self._release()


_recent: Final[OrderedDict[Watch, None]] = OrderedDict()
