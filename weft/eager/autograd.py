"""Backward passes: one recorded call each, which adds the backward graph when it is expanded."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.eager.call import cast, lazy_of, wrap
from weft.eager.handle import Handle
from weft.eager.lazy import Lazy, Record, trace
from weft.eager.plan import gradient_plan, op_plan
from weft.errors import GradientError, ShapeError
from weft.ir.shape import known, show
from weft.ops.base import REGISTRY, at_user_line


class _Mode(contextlib.ContextDecorator):
    """Whether operations inside are recorded for gradients; also a decorator."""

    def __init__(self, mode: bool) -> None:
        self._mode = mode
        self._before: list[bool] = []

    def __enter__(self) -> None:
        self._before.append(trace.grad_mode)
        trace.grad_mode = self._mode

    def __exit__(self, *_: object) -> None:
        trace.grad_mode = self._before.pop()


def no_grad() -> contextlib.ContextDecorator:
    """Results computed inside need no gradient; a context manager, or a decorator."""
    return _Mode(False)


def enable_grad() -> contextlib.ContextDecorator:
    """Ends the effect of `no_grad` inside."""
    return _Mode(True)


def set_grad_enabled(mode: bool) -> contextlib.ContextDecorator:
    """`enable_grad()` or `no_grad()`."""
    return _Mode(mode)


def is_grad_enabled() -> bool:
    """Whether results need gradients where their inputs do."""
    return trace.grad_mode


@dataclass(frozen=True)
class History:
    """What led to some values, as far as gradients flow; latest first."""

    records: dict[Record, None]
    values: dict[Lazy, None]


def history(ys: Sequence[Lazy]) -> History:
    """Walk back from `ys` to the leaves that need gradients.

    Raises:
        GradientError: an earlier backward pass has freed the graph.
    """
    found = History({}, {})
    stack = [y for y in ys if y.tracked]
    while stack:
        lazy = stack.pop()
        if lazy in found.values:
            continue
        found.values[lazy] = None
        if lazy.leaf is not None:
            continue
        record = lazy.record
        if record is None or record.freed:
            raise GradientError(
                "backward: the graph behind this value was freed by an earlier backward pass; "
                f"call that one with retain_graph=True{at_user_line()}"
            )
        if record not in found.records:
            found.records[record] = None
            stack.extend([x for x in record.inputs if x.tracked])
    return found


def backward(
    tensors: Handle | Sequence[Handle],
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Sequence[Handle] | None = None,
) -> None:
    """Add the gradients of the sum of `tensors` to `.grad` of the leaves that led to them.

    Args:
        grad_tensors: cotangents to start from; may be left out for scalars.
        retain_graph: keep what led to `tensors`, for another backward pass; `create_graph` does.
        create_graph: record the backward pass so that it can be differentiated.
        inputs: the only tensors whose `.grad` is to change.

    Raises:
        GradientError: a tensor needs no gradient, is no scalar and has no cotangent, or its graph
            was freed.
    """
    ys = [tensors] if isinstance(tensors, Handle) else list(tensors)
    starts = _starts(ys, grad_tensors)
    past = history([y for y, _ in starts])
    if inputs is None:
        targets = [x for x in past.values if x.leaf is not None]
    else:
        targets = [x.lazy for x in inputs]
    found = _pull(starts, targets, past, create_graph)
    for x, g in zip(targets, found, strict=True):
        if x in past.values:
            _accumulate(x, g, inputs)
    if not (create_graph if retain_graph is None else retain_graph):
        _free(past)


def grad(
    outputs: Handle | Sequence[Handle],
    inputs: Handle | Sequence[Handle],
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool = False,
) -> tuple[Any, ...]:
    """Gradients of the sum of `outputs` by `inputs`; `.grad` does not change.

    Returns:
        A tensor for each input; `None` where it has no influence and `allow_unused` is set.

    Raises:
        GradientError: as `backward`, or an input has no influence.
    """
    ys = [outputs] if isinstance(outputs, Handle) else list(outputs)
    xs = [inputs] if isinstance(inputs, Handle) else list(inputs)
    starts = _starts(ys, grad_outputs)
    past = history([y for y, _ in starts])
    targets = [x.lazy for x in xs]
    for i, x in enumerate(targets):
        if not (x in past.values or allow_unused):
            raise GradientError(
                f"grad: input {i} does not lead to the outputs; pass allow_unused=True to get "
                f"None for it{at_user_line()}"
            )
    found = _pull(starts, targets, past, create_graph)
    if not (create_graph if retain_graph is None else retain_graph):
        _free(past)
    return tuple(
        [
            wrap(g, like) if x in past.values else None
            for g, x, like in zip(found, targets, xs, strict=True)
        ]
    )


Starts = list[tuple[Lazy, Lazy | None]]


def _starts(ys: Sequence[Handle], given: Any) -> Starts:
    """Values to differentiate, with their cotangents."""
    if given is None or isinstance(given, Handle | np.ndarray | int | float):
        given = [given] * len(ys) if given is None else [given]
    if len(given) != len(ys):
        raise GradientError(
            f"backward: expected {len(ys)} cotangents, got {len(given)}{at_user_line()}"
        )
    return [_start(y.lazy, g) for y, g in zip(ys, given, strict=True)]


def _start(y: Lazy, given: Any) -> tuple[Lazy, Lazy | None]:
    shape = known(y.type.shape)
    if not y.tracked:
        raise GradientError(
            "backward: the tensor needs no gradient: nothing that led to it has "
            f"requires_grad=True, or it was computed under no_grad(){at_user_line()}"
        )
    if given is None:
        if np.prod(shape) != 1:
            raise GradientError(
                f"backward: expected a scalar, got a tensor of shape {show(shape)}; sum() it, or "
                f"pass a gradient of its shape{at_user_line()}"
            )
        return y, None
    g = cast(lazy_of(given, y.type.dtype), y.type.dtype)
    if g.type.shape != shape:
        raise ShapeError(
            f"backward: expected a gradient of shape {show(shape)}, got {show(g.type.shape)}"
            f"{at_user_line()}"
        )
    return y, g


def _pull(starts: Starts, xs: Sequence[Lazy], past: History, create_graph: bool) -> list[Lazy]:
    """Record the gradients by `xs`, in pieces where hooks want to see what flows between."""
    hooked = [x for x in past.values if x.hooks and x.leaf is None and x.record is not None]
    hooked.sort(key=lambda x: x.record.serial if x.record else 0)
    parts: dict[Lazy, list[Lazy]] = {}
    before, trace.grad_mode = trace.grad_mode, create_graph
    try:
        while True:
            targets = list(dict.fromkeys([*xs, *hooked]))
            for x, g in zip(targets, _record(starts, targets, hooked), strict=True):
                parts.setdefault(x, []).append(g)
            if not hooked:
                return [_total(parts[x], x) for x in xs]
            x = hooked.pop()  # the latest: all that flows into it is known now
            starts = [(x, _total(parts[x], x))]
            parts[x] = [g for _, g in starts if g is not None]
    finally:
        trace.grad_mode = before


def _record(starts: Starts, xs: Sequence[Lazy], stop: Sequence[Lazy]) -> tuple[Lazy, ...]:
    given = [g for _, g in starts if g is not None]
    plan = gradient_plan(
        [y.type for y, _ in starts],
        tuple([g is not None for _, g in starts]),
        [x.type for x in xs],
        len(stop),
    )
    return trace.record(plan, (*[y for y, _ in starts], *given, *xs, *stop))


def _total(parts: list[Lazy], x: Lazy) -> Lazy:
    """The whole gradient of a value, as its hooks leave it."""
    total = parts[0]
    for part in parts[1:]:
        total = add(total, part)
    if x.hooks is not None and x.leaf is None:
        total = _hooked(total, x)
    parts[:] = [total]
    return total


def _hooked(total: Lazy, x: Lazy) -> Lazy:
    assert x.hooks is not None
    for hook in list(x.hooks.values()):
        tensor = wrap(total)
        changed = hook(tensor)
        total = tensor.lazy if changed is None else lazy_of(changed, x.type.dtype)
    return total


def add(x: Lazy, y: Lazy) -> Lazy:
    """The sum of two values of one type."""
    return trace.record(op_plan(REGISTRY["add"], (x.type, y.type), {}), (x, y))[0]


def _accumulate(x: Lazy, g: Lazy, inputs: Sequence[Handle] | None) -> None:
    """Add a gradient to `.grad` of the tensor that it belongs to."""
    if x.leaf is not None:
        tensor = x.leaf()
        if x.hooks is not None:
            g = _hooked(g, x)
    else:
        tensor = next((t for t in inputs or () if t.lazy is x), None)
    if tensor is None:
        return
    if tensor.grad is None:
        if g.owner is not None:  # a hook kept it
            g = trace.record(op_plan(REGISTRY["identity"], (g.type,), {}), (g,))[0]
        tensor.grad = wrap(g)
    else:
        tensor.grad.replace(add(tensor.grad.lazy, g))


def _free(past: History) -> None:
    for record in past.records:
        record.freed = True
