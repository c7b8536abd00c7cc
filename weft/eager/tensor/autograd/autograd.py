"""Backward passes: gradients accumulated in `.grad` or returned."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from weft.eager.record.memory.snapshot import compute_late_gradients
from weft.eager.record.pending.conjugate import conjugated
from weft.eager.record.pending.lazy import Lazy
from weft.eager.record.pending.state import computing, trace
from weft.eager.tensor.autograd.anomaly import check_gradients
from weft.eager.tensor.autograd.backward import Given, History, Starts, add_to, history, seen, walk
from weft.eager.tensor.autograd.call_hook import around
from weft.eager.tensor.autograd.custom_function import Custom
from weft.eager.tensor.autograd.gradient_dependence import depended_on
from weft.eager.tensor.autograd.hook import (
    Afterwards,
    after_backward,
    backward_pass,
    this_pass,
)
from weft.eager.tensor.dispatch import cast, lazy_of, unowned, wrap
from weft.eager.tensor.handle import Handle
from weft.eager.tensor.interchange.conversion import zeros_of
from weft.errors import ArgumentError, GradientError, ShapeError
from weft.ir.node import at_user_line
from weft.ir.shape import known, show, size


def backward(
    tensors: Handle | Sequence[Handle], grad_tensors: Any = None, retain_graph: bool | None = None,
    create_graph: bool = False, inputs: Sequence[Handle] | None = None,
) -> None:  # fmt: skip
    """Add the gradients of the sum of `tensors` to `.grad` of their leaves.

    Args:
        grad_tensors: cotangents to start from; optional for scalars.
        retain_graph: keep the graph for another backward pass; defaults to `create_graph`.
        create_graph: record the backward pass so that it can be differentiated.
        inputs: the only tensors whose `.grad` changes.

    Raises:
        GradientError: a tensor requires no grad, is no scalar but has no cotangent, or its graph
            was freed; or `inputs` is empty.
    """
    ys = [tensors] if isinstance(tensors, Handle) else list(tensors)
    if inputs is not None and not isinstance(inputs, Handle) and not inputs:
        raise GradientError.here("backward: expected inputs, got none")
    now, before = trace.now, trace.now.grad_mode
    try:  # no `with`: Ctrl-C at the start of its exit would leave the mode on
        now.grad_mode = create_graph
        with backward_pass():
            starts = _starts(ys, grad_tensors)
            past = _past(starts)
            if inputs is None:
                targets = [x for x in past.values if x.leaf is not None]
            else:
                targets = [x.lazy for x in ([inputs] if isinstance(inputs, Handle) else inputs)]
            found = walk(starts, targets, past, begins=inputs is not None)
            recorded = this_pass().recorded
            _inspect(found)
            _accumulate_all(targets, found)
    finally:
        now.grad_mode = before
    if not (create_graph if retain_graph is None else retain_graph):
        _free(past if inputs is None else past.towards(targets), recorded)
    compute_late_gradients(past.records)
    trace.now.end_backward()
    for told in tuple(after_backward):
        told(targets)


def grad(
    outputs: Handle | Sequence[Handle], inputs: Handle | Sequence[Handle], grad_outputs: Any = None,
    retain_graph: bool | None = None, create_graph: bool = False, allow_unused: bool | None = None,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:  # fmt: skip
    """Gradients of the sum of `outputs` with respect to `inputs`; see `weft.autograd.grad`."""
    ys = [outputs] if isinstance(outputs, Handle) else list(outputs)
    xs = [inputs] if isinstance(inputs, Handle) else list(inputs)
    if not xs:
        raise ArgumentError.here("grad: expected inputs, got none")
    targets = [x.lazy for x in xs]
    if materialize_grads and allow_unused is False:
        raise ArgumentError.here(
            "grad: expected allow_unused to be left out or True with materialize_grads, got False"
        )
    allow_unused = allow_unused or materialize_grads
    now, before = trace.now, trace.now.grad_mode
    try:  # as in `backward`
        now.grad_mode = create_graph
        with backward_pass():
            starts = _starts(ys, grad_outputs)
            past = _past(starts)
            for i, x in enumerate(targets):
                if not (x in past.values or allow_unused):
                    raise _unused(i)
            found = walk(starts, targets, past)
            recorded = this_pass().recorded
            _inspect(found)
            found = [
                None if g is None else conjugated(seen(x, g) if x.leaf else g)
                for x, g in zip(targets, found, strict=True)
            ]
    finally:
        now.grad_mode = before
    for i, g in enumerate(found):
        if g is None and not allow_unused:
            raise _unused(i)
    if not (create_graph if retain_graph is None else retain_graph):
        _free(past.towards(targets), recorded)
    grads = [None if g is None else wrap(unowned(g), x) for g, x in zip(found, xs, strict=True)]
    if materialize_grads:
        grads = [
            _zeros_like(x, create_graph) if g is None else g for g, x in zip(grads, xs, strict=True)
        ]
    compute_late_gradients(past.records)
    return tuple(grads)


def _past(starts: Starts) -> History:
    ys = [y for y, _ in starts]
    return depended_on(history(ys), ys)


def _inspect(found: Sequence[Lazy | None]) -> None:
    check_gradients([g for g in found if g is not None])


def _unused(i: int) -> GradientError:
    return GradientError(
        f"grad: input {i} does not lead to the outputs; pass allow_unused=True to get None for it"
        f"{at_user_line()}"
    )


def _starts(ys: Sequence[Handle], given: Any) -> Starts:
    """Values to differentiate, with their cotangents."""
    if given is None or isinstance(given, Handle | np.ndarray | int | float):
        given = [given] * len(ys) if given is None else [given]
    if len(given) != len(ys):
        raise GradientError.here(f"backward: expected {len(ys)} cotangents, got {len(given)}")
    return [_start(y.lazy, g) for y, g in zip(ys, given, strict=True)]


def _start(y: Lazy, given: Any) -> tuple[Lazy, Lazy | None]:
    shape = known(y.type.shape)
    if not y.tracked:
        raise GradientError.here(
            "backward: the tensor requires no grad: nothing it depends on has "
            "requires_grad=True, or it was computed under no_grad()"
        )
    if given is None:
        if size(shape) != 1:
            raise GradientError.here(
                f"backward: expected a scalar, got a tensor of shape {show(shape)}; sum() it, or "
                f"pass a gradient of its shape"
            )
        if y.type.dtype.is_complex:
            raise GradientError.here(
                f"backward: expected a real scalar, got one of {y.type.dtype}; take its real part, "
                f"or pass a gradient"
            )
        return y, None
    g = cast(lazy_of(given, y.type.dtype), y.type.dtype)
    if g.type.shape != shape:
        raise ShapeError.here(
            f"backward: expected a gradient of shape {show(shape)}, got {show(g.type.shape)}"
        )
    return y, conjugated(g)


def _accumulate_all(targets: Sequence[Lazy], found: Sequence[Lazy | None]) -> None:
    """Add gradients to `.grad` of the tensors that hold the targets."""
    rest: list[tuple[Lazy, Lazy]] = []
    with computing:  # other threads may give gradients to the same tensors
        given = Given()
        for x, g in zip(targets, found, strict=True):
            if g is None:
                continue
            tensor = None if x.leaf is None or x.hooks is not None else x.leaf()
            if tensor is None or g.owner is not None or tensor._grad is not None:
                rest.append((x, g))
            else:
                given.give(tensor, conjugated(g))
    for x, g in rest:
        _accumulate(x, g)


def _accumulate(x: Lazy, g: Lazy) -> None:
    """Add a gradient to `.grad` of the tensor that holds a value."""
    reference = x.owner if x.leaf is None else x.leaf
    tensor = None if reference is None else reference()
    if tensor is None:
        return
    node = None if x.leaf is None else around(x)
    if x.leaf is not None:
        g = seen(x, g)
    for part in [g] if node is None else node.begin([g]):
        if part is not None:
            add_to(tensor, conjugated(part))
            g = part
    for hook in list((x.hooks or {}).values()):
        if isinstance(hook, Afterwards):
            hook.function(tensor)
    if node is not None:
        node.end((), [g])


def _free(past: History, recorded: Sequence[tuple[weakref.ref[Lazy], ...]]) -> None:
    """Free the graph for all but the gradients that were recorded."""
    for record in past.records:
        record.freed = recorded
        for result in record.results:
            y = result()
            if type(y) is Custom:
                y.call.free()


def _zeros_like(x: Any, requires_grad: bool) -> Any:
    found = zeros_of(known(x.lazy.type.shape), x.lazy.type.dtype)
    return found.requires_grad_() if requires_grad else found
