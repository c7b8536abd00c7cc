"""scan: a body applied to successive slices of arrays, with a carry.

for t in range(length):  # or backward, with `reverse`
    *carry, *ys[t] = body(*carry, *[x[t] for x in mapped], *captured)

With the length `STACKED` it iterates over stacks of a `while_loop` or of another such scan: arrays
with one row for each iteration of the loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from weft.errors import DTypeError, ShapeError
from weft.ir.dtype import DType, float64
from weft.ir.shape import Shape, compatible, known, show
from weft.ops.call import Subgraph, retyped, trace, types_of
from weft.ops.control.agreement import merged_shapes, same_dtypes
from weft.ops.control.function_reference import prepared
from weft.ops.control.region import region
from weft.ops.declaration import Array, Case, Op, catalogue
from weft.ops.declaration.attribute import REQUIRED
from weft.ops.declaration.example import count

UNKNOWN_ITERATIONS: Final = 10_000
"""Assumed iterations of a loop of unknown length: enough to compile it before its first run."""
STACKED: Final = -1
"""The length of a scan over stacks: as many rows as they have in a run."""


class Parts(NamedTuple):
    """The inputs of a scan, or items that correspond to them."""

    inits: Sequence[Any]
    mapped: Sequence[Any]
    captured: Sequence[Any]


def parts(xs: Sequence[Any], carried: int, mapped: int) -> Parts:
    """The role of each input of a scan."""
    return Parts(xs[:carried], xs[carried : carried + mapped], xs[carried + mapped :])


def _dtype(
    *dtypes: DType, body: Subgraph, carried: int, mapped: int, **_: Any
) -> tuple[DType, ...]:
    if len(dtypes) < carried + mapped or len(body.outputs) < carried:
        raise DTypeError(
            f"expected {carried} carried and {mapped} mapped inputs and a body that gives the"
            f" carry, got {len(dtypes)} inputs and a body of {len(body.outputs)} outputs"
        )
    taken = [t.dtype for t in body.input_types]
    same_dtypes("inputs as the body takes them (inputs | body)", dtypes, taken)
    given = [t.dtype for t in body.output_types]
    what = "a body that gives its carry back as it got it (before | after)"
    same_dtypes(what, dtypes[:carried], given[:carried])
    return tuple(given)


def reads_stacks(op: Op, attrs: Mapping[str, Any]) -> bool:
    """Whether the mapped inputs are stacks of a loop, of unknown length."""
    return op is scan and attrs["length"] == STACKED


def _rows(shapes: Sequence[Shape]) -> list[Shape]:
    """The shapes of slices of arrays of these shapes."""
    for shape in shapes:
        if shape is not None and not shape:
            raise ShapeError("expected mapped inputs of rank 1 or more, got a scalar")
    return [None if s is None else s[1:] for s in shapes]


def _inner(shapes: Sequence[Shape], carried: int, mapped: int) -> list[Shape]:
    """Shapes of the body's inputs."""
    p = parts(shapes, carried, mapped)
    return [*p.inits, *_rows(p.mapped), *p.captured]


def _shape(
    *shapes: Shape, body: Subgraph, length: Any, carried: int, mapped: int, **_: Any
) -> tuple[Shape, ...]:
    steps = length if isinstance(length, int) and length != STACKED else None
    if steps is not None and steps < 0:
        raise ShapeError(f"expected a length of 0 or more, got {steps}")
    for i, shape in enumerate(parts(shapes, carried, mapped).mapped):
        if shape and not compatible(shape[:1], (steps,)):
            raise ShapeError(
                f"expected mapped inputs of {steps} slices, got {show(shape)} for mapped input {i}"
            )
    found = retyped(body, _inner(shapes, carried, mapped))
    before = [t.shape for t in found.input_types[:carried]]
    after = [t.shape for t in found.output_types]
    what = "a body that gives its carry back as it got it (before | after)"
    finals = merged_shapes(what, before, after[:carried])
    return (*finals, *[None if s is None else (steps, *s) for s in after[carried:]])


def _normal(
    *shapes: Shape, body: Subgraph, carried: int, mapped: int, **attrs: Any
) -> Mapping[str, Any]:
    whole = retyped(body, _inner(shapes, carried, mapped))
    return {"body": whole, **attrs, "carried": carried, "mapped": mapped}


def _reference(
    *arrays: Array, body: Subgraph, length: int, carried: int, mapped: int, reverse: bool,
    rematerialize: int, fast: bool = False,
) -> tuple[Array, ...]:  # fmt: skip
    run = prepared(body, fast)
    p = parts(arrays, carried, mapped)
    carry = list(p.inits)
    if length == STACKED:
        length = len(p.mapped[0])
    rows: list[list[Array]] = []
    for t in range(length - 1, -1, -1) if reverse else range(length):
        found = run([*carry, *[x[t] for x in p.mapped], *p.captured])
        carry = found[:carried]
        rows.append(found[carried:])
    if not rows:
        whole = retyped(body, _inner([a.shape for a in arrays], carried, mapped))
        kinds = whole.output_types[carried:]
        return (*carry, *[np.zeros((0, *known(t.shape)), t.dtype.numpy) for t in kinds])
    columns = zip(*(reversed(rows) if reverse else rows), strict=True)
    return (*carry, *[np.stack(column) for column in columns])


def _fast(*arrays: Array, **attrs: Any) -> tuple[Array, ...]:
    return _reference(*arrays, **attrs, fast=True)


def _case(
    arrays: Sequence[Array], body: Any, length: int, carried: int, mapped: int, **attrs: Any
) -> Case:
    kinds = types_of([*arrays[:carried], *[np.zeros(a.shape[1:], a.dtype) for a in
                     arrays[carried : carried + mapped]], *arrays[carried + mapped :]])  # fmt: skip
    whole = {"body": trace(body, kinds), "length": length, "carried": carried, "mapped": mapped}
    smooth = all(a.dtype in (np.float64, np.int32) for a in arrays)  # as the body was traced for
    return Case(tuple(arrays), {**whole, **attrs}, differentiate=smooth)


def _cases() -> Iterator[Case]:
    h, x, w = (count(s, float64) * 0.05 for s in ((2, 3), (4, 2, 3), (3, 3)))
    n = np.array([3, 1, 0, 2], np.int32)

    def cell(h: Any, x: Any, w: Any) -> Any:
        new = catalogue.tanh(h @ w + x)
        return new, new * x

    for reverse in (False, True):
        yield _case((h, x, w), cell, 4, 1, 1, reverse=reverse)
        narrow = [a.astype(np.float32) for a in (h, x, w)]
        yield _case(narrow, cell, 4, 1, 1, reverse=reverse)
    yield _case((h, x, w), cell, 4, 1, 1, rematerialize=2)
    yield _case((h, x[:0], w), cell, 0, 1, 1)
    yield _case((x, w), lambda x, w: catalogue.sum(x @ w), 4, 0, 1)
    yield _case((h,), lambda h: catalogue.sin(h), 3, 1, 0)
    picked = lambda h, i, w: (h * catalogue.gather(w, i, axis=0), i)  # noqa: E731
    yield _case((h, n[:3] % 3, w), picked, 3, 1, 1)
    yield _case((n,), lambda i: i * i, 4, 0, 1)


def _iterations(length: int, **_: Any) -> float:
    return UNKNOWN_ITERATIONS if length == STACKED else length


scan = region(
    "scan",
    inputs="*xs",
    attrs={
        "body": REQUIRED,
        "length": REQUIRED,
        "carried": REQUIRED,
        "mapped": REQUIRED,
        "reverse": False,
        "rematerialize": 0,
    },
    dtype=_dtype,
    shape=_shape,
    reference=_reference,
    fast=_fast,
    cases=_cases,
    normal=_normal,
    runs=_iterations,
)
"""The carry after the last step, then the body's other results, stacked along axis 0.

Inputs: `carried` initial values, `mapped` arrays of `length` slices, and loop-invariant values.
With the length `STACKED`, mapped inputs and stacked results are stacks. `reverse` begins with the
last slice. With `rematerialize`, the gradient keeps the carry only every so many steps and
recomputes the steps between; with 0 it keeps what it needs.
"""
