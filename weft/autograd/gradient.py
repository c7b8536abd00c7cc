"""`grad`: gradients of tensors, for one cotangent or a batch of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.eager.tensor.autograd import autograd
from weft.eager.tensor.handle import Handle
from weft.errors import GradientError, ShapeError
from weft.func.vmap import vmap
from weft.ir.shape import show


def grad(
    outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool | None = None,
    create_graph: bool = False, only_inputs: bool = True, allow_unused: bool | None = None,
    is_grads_batched: bool = False, materialize_grads: bool = False,
) -> tuple[Any, ...]:  # fmt: skip
    """Gradients of the sum of `outputs` with respect to `inputs`; `.grad` does not change.

    Args:
        grad_outputs: cotangents to start from; optional for scalars.
        retain_graph: keep the graph for another pass; defaults to `create_graph`.
        create_graph: record the gradients so that they can be differentiated.
        only_inputs: no effect.
        allow_unused: whether outputs may not depend on some inputs.
        is_grads_batched: cotangents and gradients have a leading batch axis, as with
            `weft.func.vmap`.
        materialize_grads: zeros for unused inputs.

    Returns:
        A tensor for each input; `None` for unused ones if `allow_unused` is set.

    Raises:
        GradientError: as for `backward`, or an input is unused.
        ShapeError: a cotangent does not have the shape of its output, or no batch axis.
        ValueError: no inputs; or `materialize_grads` although `allow_unused` is False.

    >>> import weft as wf
    >>> x = wf.tensor([1.0, 2.0], requires_grad=True)
    >>> wf.autograd.grad(x * x, x, wf.eye(2), is_grads_batched=True)[0].tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    if not is_grads_batched:
        return autograd.grad(
            outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused,
            materialize_grads,
        )  # fmt: skip
    ys: list[Any] = [outputs] if isinstance(outputs, Handle) else list(outputs)
    given: Any = grad_outputs
    if given is None:
        raise GradientError.here(
            "grad: is_grads_batched: expected grad_outputs with a leading batch axis, got None"
        )
    cotangents: list[Any] = [given] if isinstance(given, Handle) else list(given)
    if len(cotangents) != len(ys):
        raise GradientError.here(f"grad: expected {len(ys)} cotangents, got {len(cotangents)}")
    for y, g in zip(ys, cotangents, strict=True):
        if g is not None and tuple(g.shape[1:]) != tuple(y.shape):
            raise ShapeError.here(
                f"grad: is_grads_batched: expected a gradient of shape (batch, *{show(y.shape)}), "
                f"got {show(g.shape)}"
            )
    reached: list[bool] = []

    def pull(gs: Sequence[Any]) -> list[Any]:
        found = autograd.grad(ys, inputs, gs, True, create_graph, allow_unused, materialize_grads)
        reached[:] = [g is not None for g in found]
        return [g for g in found if g is not None]

    found = iter(vmap(pull)(cotangents))
    return tuple([next(found) if one else None for one in reached])
