"""What stays from one run to the next: parameters and buffers of modules, until they are changed.

What a program computes from them alone is kept between its runs. So every way to change a tensor
has to show here: an in-place change, an optimiser's step and `load_state_dict` give it another
value, an assignment to some elements another version; memory that NumPy or another library may
write to counts as changed at every run.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final

from weft.eager.handle import Handle
from weft.eager.lazy import Alias, Lazy
from weft.eager.structure import Structure

MOST_KEEPING: Final = 4
"""Programs that keep something; where shapes change, each shape would have its own weights."""


def lasting_leaves(structure: Structure) -> tuple[int, ...]:
    """Positions of the leaves that stay; none beside a gradient, as training changes them."""
    if any([record.plan.follows for record in structure.records]):
        return ()
    taken = set(structure.homes)
    return tuple(
        [i for i, leaf in enumerate(structure.leaves) if i not in taken and _is_lasting(leaf)]
    )


def _is_lasting(leaf: Lazy) -> bool:
    handle = _keeper(leaf)
    return handle is not None and getattr(handle, "lasting", False)


def _keeper(leaf: Lazy) -> Handle | None:
    """The tensor whose version tells of every change of a leaf, if there is one."""
    handle = None if leaf.owner is None or type(leaf) is Alias else leaf.owner()
    if handle is None or handle.view_of is not None or getattr(handle, "lent", False):
        return None
    return handle


class Watch:
    """Tells whether leaves are what they were when it was last asked.

    Args:
        positions: which of a structure's leaves to look at.
        release: called when what was computed from them is of no more use.
    """

    def __init__(self, positions: Sequence[int], release: Callable[[], None]) -> None:
        self._positions = positions
        self._release = release
        self._seen: list[tuple[Any, int, int]] = []  # tensor, its version, its value's identity
        self._first: weakref.ref[Handle] | None = None

    def is_fresh(self, leaves: Sequence[Lazy]) -> bool:
        """Whether no leaf has changed."""
        seen = self._seen
        if seen and all(
            [self._is_same(leaves[i], *mark) for i, mark in zip(self._positions, seen, strict=True)]
        ):
            return True
        self._look([leaves[i] for i in self._positions])
        _recent[self] = None
        _recent.move_to_end(self)
        if len(_recent) > MOST_KEEPING:
            _recent.popitem(last=False)[0].end()
        return False

    @staticmethod
    def _is_same(leaf: Lazy, owner: Any, version: int, identity: int) -> bool:
        if leaf.owner is not owner or id(leaf) != identity:
            return False
        handle = _keeper(leaf)
        return handle is not None and handle.version == version

    def _look(self, leaves: Sequence[Lazy]) -> None:
        """Note what the leaves are; nothing where one of them may change unseen."""
        keepers = [_keeper(leaf) for leaf in leaves]
        self._seen, self._first = [], None
        for leaf, keeper in zip(leaves, keepers, strict=True):
            if keeper is None:
                self._seen = []
                return
            self._seen.append((leaf.owner, keeper.version, id(leaf)))
        if keepers[0] is not None:
            self._first = weakref.ref(keepers[0], self._gone)

    def _gone(self, _: Any) -> None:
        """A tensor is gone, and with it most likely all of the model."""
        self.end()

    def end(self) -> None:
        """Take nothing for fresh, and keep nothing, until asked again."""
        self._seen, self._first = [], None
        self._release()


_recent: Final[OrderedDict[Watch, None]] = OrderedDict()
