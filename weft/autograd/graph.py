"""The autograd graph, under the names of PyTorch's `torch.autograd.graph`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from weft.eager.tensor.autograd.grad_fn import Node
from weft.eager.tensor.autograd.hook import RemovableHandle, RemovableHandles, this_pass
from weft.ir.node import at_user_line

__all__ = ["Node", "register_multi_grad_hook"]


def register_multi_grad_hook(
    tensors: Sequence[Any], fn: Callable[[Any], Any], *, mode: str = "all"
) -> RemovableHandle:
    """Call a function in each backward pass that reaches any of some tensors.

    Args:
        fn: called at the end of the pass with a list of their gradients, `None` for those not
            reached; with `mode="any"`, with the first gradient as soon as it is known.

    Raises:
        GradientError: a tensor requires no grad.
        ValueError: another mode.

    Example:
        >>> import weft as wf
        >>> x, y = wf.ones(1, requires_grad=True), wf.ones(1, requires_grad=True)
        >>> seen = []
        >>> handle = register_multi_grad_hook((x, y), seen.append)
        >>> (x * 2).backward()
        >>> seen
        [[tensor([2.]), None]]
    """
    if mode not in ("all", "any"):
        raise ValueError(
            f"register_multi_grad_hook: expected mode 'all' or 'any', got {mode!r}{at_user_line()}"
        )
    key = object()

    def see(place: int, gradient: Any) -> None:
        now = this_pass()
        first = key not in now.gradients
        gradients = now.gradients.setdefault(key, [None] * len(tensors))
        gradients[place] = gradient
        if first and mode == "any":
            fn(gradient)
        elif first:
            now.ends.append(lambda: fn(gradients))

    return RemovableHandles([x.register_hook(partial(see, i)) for i, x in enumerate(tensors)])
