"""The graph behind a tensor, as PyTorch shows it: `x.grad_fn` and what that goes on to."""

from __future__ import annotations

import functools
from typing import Any

from weft.eager.lazy import Lazy


class Node:
    """What a value is the result of; of a leaf, what accumulates its gradient.

    Two are equal that stand for the same call. The class of each is named after the operation.
    """

    def __init__(self, lazy: Lazy) -> None:
        self._lazy = lazy

    def name(self) -> str:
        """That of the operation, with `Backward` behind it."""
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """What each argument is the result of, and which; `None` where no gradient flows."""
        record = self._lazy.record
        if self._lazy.leaf is not None or record is None:
            return ()
        return tuple([(node_of(x), x.index if x.tracked else 0) for x in record.inputs])

    @property
    def variable(self) -> Any:
        """The leaf whose gradient accumulates here, while there is one."""
        leaf = self._lazy.leaf
        if leaf is None:
            raise AttributeError(f"{self.name()}: only AccumulateGrad has a variable")
        return leaf()

    def _identity(self) -> int:
        return id(self._lazy if self._lazy.record is None else self._lazy.record)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return self._identity()

    def __repr__(self) -> str:
        return f"<{self.name()}>"


@functools.cache
def _kind(name: str) -> type[Node]:
    return type(name, (Node,), {})


def node_of(lazy: Lazy) -> Node | None:
    """The node of a value; `None` where no gradient flows through it.

    >>> import weft as wf
    >>> y = wf.ones(2, requires_grad=True) * 2
    >>> y.grad_fn, y.grad_fn.next_functions
    (<MultiplyBackward>, ((<AccumulateGrad>, 0), (None, 0)))
    """
    if not lazy.tracked:
        return None
    if lazy.leaf is not None:
        return _kind("AccumulateGrad")(lazy)
    name = "value" if lazy.record is None else lazy.record.plan.name
    # An operation is called log_softmax, a function of the user's LogSoftmax.
    words = name.split("_") if name.islower() else [name]
    return _kind("".join([word[:1].upper() + word[1:] for word in words]) + "Backward")(lazy)
