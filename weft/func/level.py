"""Variables of derivatives, and whether outer derivatives differentiate the result."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

from weft.eager.record.call.plan import Plan, plan_of, recall, remember
from weft.eager.record.pending.lazy import Lazy, Tracer
from weft.eager.record.pending.mode import Setting
from weft.eager.record.pending.state import trace
from weft.eager.tensor.autograd.backward import History, history
from weft.eager.tensor.dispatch import lazy_of, wrap
from weft.eager.tensor.handle import Handle
from weft.errors import GradientError
from weft.func.function import changed
from weft.func.tree import Tree, flatten
from weft.host.garbage_collection import FirstRead
from weft.ir.node import TensorType
from weft.ops.declaration import REGISTRY

_IDENTITY: Final = REGISTRY["identity"]


class _Levels(threading.local):
    open = FirstRead[list[Collection[Lazy]]](list)


_levels: Final = _Levels()


def opened(values: Collection[Lazy]) -> None:
    """Begin a derivative with respect to these values."""
    _levels.open.append(values)


def closed(values: Collection[Lazy]) -> None:
    """End it."""
    _levels.open[:] = [level for level in _levels.open if level is not values]


def variable(x: Any, what: str) -> tuple[Any, Lazy]:
    """A variable: a tensor with the value of `x` that requires grad, and its value.

    Raises:
        GradientError: the value is not floating-point.
    """
    lazy = lazy_of(x)
    if not lazy.type.dtype.is_inexact:
        raise GradientError.here(
            f"{what}: expected floating arguments, got {lazy.type}; make it floating, or choose "
            f"other arguments with argnums"
        )
    found = trace.now.record(_plan(lazy.type), (lazy,))[0]
    found.tracked = True
    return wrap(found, x if isinstance(x, Handle) else None), found


def _plan(kind: TensorType) -> Plan:
    key = ("variable", id(kind))
    found = recall(key)
    if found is None:
        found = remember(key, plan_of("variable", (kind,), (kind,), _IDENTITY.all))
        found.pattern.variable = True
    return found


def kind_of_leaf(x: Any) -> type[Any] | None:
    """The tensor class of `x`; `None` if it is no tensor."""
    return type(x) if isinstance(x, Handle) else None


class Variables:
    """The leaves of some arguments as variables of one derivative."""

    def __init__(self, arguments: Sequence[Any], what: str) -> None:
        self.given, self.tree = flatten(list(arguments))
        pairs = [variable(x, what) for x in self.given]
        self.kinds = tuple([kind_of_leaf(x) for x in self.given])
        self.values = tuple([lazy for _, lazy in pairs])
        self.tensors = [tensor for tensor, _ in pairs]
        self.arguments: list[Any] = self.tree.build(self.tensors)

    @contextlib.contextmanager
    def differentiated(self) -> Iterator[None]:
        """Inside it, results of operations on them can be differentiated."""
        opened(self.values)
        try:
            with Setting("grad_mode", True):
                yield
        finally:
            closed(self.values)

    def changed(self) -> list[tuple[Handle, Lazy]]:
        """The argument tensors that were changed in place, with their new values."""
        return [
            (self.given[i], self.tensors[i].lazy)
            for i in changed(self.tensors, self.values)
            if self.kinds[i] is not None
        ]

    def structures(self) -> tuple[Tree, ...]:
        """The structure of each argument."""
        return self.tree.children


def is_differentiated(past: History, own: Sequence[Lazy]) -> bool:
    """Whether values depend on variables of others: an outer derivative or a leaf.

    Or may depend, as for arguments under `vmap`, which stand for outside values.
    """
    if _reaches(past, own) or any([x.leaf is not None for x in past.values]):
        return True
    return bool(trace.now.maps) and any([isinstance(x, Tracer) for x in past.values])


def is_begun_since(values: Sequence[Lazy], serial: int) -> bool:
    """Whether values depend on variables of a derivative that began after a record."""
    past = history(values).values if _levels.open else {}
    wanted = {x for level in _levels.open for x in level}
    return any([x in wanted and x.record and x.record.serial >= serial for x in past])


def has_gradient(value: Lazy, own: Collection[Lazy]) -> bool:
    """The same for a value whose graph may have been freed, so that its history is unknown."""
    seen: set[Lazy] = set()
    stack = [value]
    while stack:
        x = stack.pop()
        if x in seen or not x.tracked:
            continue
        seen.add(x)
        if x.leaf is not None or x.record is None or x.record.freed is not None:
            return True
        if x not in own and any([x in level for level in _levels.open]):
            return True
        stack += x.record.inputs
    return False


def is_inside(values: Sequence[Lazy]) -> bool:
    """Whether values depend on variables of a derivative of this package."""
    return bool(_levels.open) and _reaches(history(values), ())


def _reaches(past: History, own: Sequence[Lazy]) -> bool:
    return any(x in past.values for level in _levels.open for x in level if x not in own)
