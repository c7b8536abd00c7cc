"""The autograd graph as PyTorch shows it: `x.grad_fn` and its `next_functions`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from weft.eager.record.pending.conjugate import conjugated
from weft.eager.record.pending.lazy import Lazy
from weft.eager.record.pending.state import flush
from weft.eager.tensor.autograd.backward import pull_all, results
from weft.eager.tensor.autograd.call_hook import around_of, call_of, entered, siblings
from weft.eager.tensor.autograd.custom_function import Custom
from weft.eager.tensor.autograd.hook import RemovableHandle, backward_pass
from weft.eager.tensor.dispatch import lazy_of, unowned, wrap


class Node:
    """The call that computed a value; for a leaf, the node that accumulates its gradient.

    Nodes for the same call are equal. The class of a node is named after its operation.
    """

    def __init__(self, lazy: Lazy) -> None:
        self._lazy = lazy

    def name(self) -> str:
        """The name of the operation followed by `Backward`."""
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """For each argument, its node and which result it is; `None` if no gradient flows."""
        record = self._lazy.record
        if self._lazy.leaf is not None or record is None:
            return ()
        return tuple([(node_of(x), _place(x)) for x in record.inputs])

    @property
    def variable(self) -> Any:
        """The leaf whose gradient accumulates here, if it is still alive."""
        leaf = self._lazy.leaf
        if leaf is None:
            raise AttributeError
        return leaf()

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for the user's data.

        What is pending is computed first, since it would keep the node and its data alive.
        """
        flush()
        return around_of(self._lazy).metadata

    def register_prehook(self, hook: Callable[[tuple[Any, ...]], Any]) -> RemovableHandle:
        """Call `hook(gradients)` in each backward pass before it goes through this node.

        The gradients are those of the results, `None` if missing; a tuple that the hook returns
        replaces them.

        Example:
            >>> import weft as wf
            >>> x = wf.ones(2, requires_grad=True)
            >>> y = x * 3
            >>> handle = y.grad_fn.register_prehook(lambda gs: (gs[0] * 10,))
            >>> y.sum().backward()
            >>> x.grad.tolist()
            [30.0, 30.0]
        """
        return entered(around_of(self._lazy).before, hook)

    def register_hook(self, hook: Callable[[tuple[Any, ...], tuple[Any, ...]], Any]) -> Any:
        """Call `hook(inputs, results)` in each backward pass after it went through this node.

        It gets the gradients of the inputs and those of the results; a tuple that it returns
        replaces the former. An input that occurs twice has its whole gradient at its first
        position.

        Example:
            >>> import weft as wf
            >>> x = wf.ones(1, requires_grad=True)
            >>> y = x * 3
            >>> handle = y.grad_fn.register_hook(lambda xs, ys: print(xs[0], ys[0]))
            >>> y.backward()
            tensor([3.]) tensor([1.])
        """
        return entered(around_of(self._lazy).after, hook)

    def __call__(self, *gradients: Any) -> Any:
        """Compute the gradients of the inputs from those of the results; `None` for missing ones.

        Raises:
            TypeError: the number of gradients differs from that of results.
        """
        record = self._lazy.record
        if self._lazy.leaf is not None or record is None:
            raise TypeError(f"{self.name()}: accumulates a gradient, and gives none")
        places = results(self._lazy)
        if len(gradients) != len(places):
            text = f"{self.name()}: expected {len(places)} arguments, got {len(gradients)}"
            raise TypeError(text)
        given = [None if g is None else conjugated(lazy_of(g)) for g in gradients]
        with backward_pass():
            gs = pull_all(siblings(self._lazy), given)
        shown = tuple([None if g is None else wrap(unowned(conjugated(g))) for g in gs])
        return shown[0] if len(shown) == 1 else shown

    def __getattr__(self, name: str) -> Any:
        """For a custom function, the attributes of its context, such as `saved_tensors`."""
        lazy = self.__dict__.get("_lazy")
        if isinstance(lazy, Custom) and hasattr(lazy.call.context, name):
            return getattr(lazy.call.context, name)
        raise AttributeError(
            f"{type(self).__name__!r} object has no attribute {name!r}: only AccumulateGrad has a "
            "variable, and a node of a function of one's own what its context has"
        )

    def _identity(self) -> int:
        return id(call_of(self._lazy))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return self._identity()

    def __repr__(self) -> str:
        return f"<{self.name()}>"


def _place(x: Lazy) -> int:
    """The index of a value among the results of its node."""
    return x.index if x.tracked and call_of(x) is not x else 0


@functools.cache
def _kind(name: str) -> type[Node]:
    return type(name, (Node,), {})


def node_of(lazy: Lazy) -> Node | None:
    """The node of a value; `None` if no gradient flows through it.

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
    # Operations are named like log_softmax, custom functions like LogSoftmax.
    words = name.split("_") if name.islower() else [name]
    return _kind("".join([word[:1].upper() + word[1:] for word in words]) + "Backward")(lazy)
