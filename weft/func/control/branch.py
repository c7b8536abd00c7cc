"""cond and switch: run one of several functions, selected while the program runs."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Final

from weft.eager.record.pending.lazy import Lazy
from weft.eager.tensor.dispatch import cast, lazy_of, record
from weft.eager.tensor.dtype.promotion import promote
from weft.eager.tensor.handle import Handle
from weft.eager.tensor.view.inplace import rewrite
from weft.errors import DTypeError, ShapeError, TreeError
from weft.func.control.body import Body, agree, body_of, gives_way, nest, tensors, union
from weft.func.function import Function
from weft.func.tree import Tree, flatten
from weft.ir.dtype import DType, bool_, int32
from weft.ir.node import TensorType, Value
from weft.ir.shape import show
from weft.ops.call import Subgraph
from weft.ops.call import trace as traced
from weft.ops.declaration import REGISTRY

__all__ = ["cond", "switch"]

_SWITCH: Final = REGISTRY["switch"]


def cond(pred: Any, true_fun: Function, false_fun: Function, *operands: Any) -> Any:
    """Call `true_fun(*operands)` if `pred` is true, otherwise `false_fun(*operands)`.

    Both functions are traced, and the program runs one of them: the value of `pred` is never read
    in Python. They may use outside tensors, with gradients, and change them in place.

    Args:
        pred: a scalar; a number counts as true unless it is 0.
        operands: nested tensors, arrays and numbers.

    Raises:
        TreeError: the functions' results differ in structure, shape or type.
        ShapeError: `pred` is no scalar.

    >>> import weft as wf
    >>> x = wf.tensor(-3.0)
    >>> cond(x > 0, lambda x: x, lambda x: -x, x).item()
    3.0
    """
    lazy = _scalar(pred, "cond: pred")
    if lazy.type.dtype is not bool_:
        zero = lazy_of(0, lazy.type.dtype)
        lazy = record(REGISTRY["not_equal"], (lazy, zero), {})[0]
    return _switch("cond", cast(lazy, int32), (false_fun, true_fun), operands)


def switch(index: Any, branches: Sequence[Function], *operands: Any) -> Any:
    """Call `branches[index](*operands)`.

    The index is clamped to the range. Otherwise it is like `cond`.

    Args:
        index: an integer scalar.

    Raises:
        TreeError: there is no branch, or their results differ in structure, shape or type.
        DTypeError: the index is no integer.

    >>> import weft as wf
    >>> fs = [lambda x: x, lambda x: x * x, lambda x: -x]
    >>> [switch(wf.tensor(i), fs, 3.0).item() for i in (0, 1, 2, 9)]
    [3.0, 9.0, -3.0, -3.0]
    """
    lazy = _scalar(index, "switch: index")
    if not lazy.type.dtype.is_integer:
        raise DTypeError.here(f"switch: index: expected an integer, got {lazy.type.dtype}")
    last = len(branches) - 1
    if lazy.type.dtype is not int32 and last >= 0:  # a smaller dtype might wrap around
        lazy = record(REGISTRY["minimum"], (lazy, lazy_of(last, lazy.type.dtype)), {})[0]
        if lazy.type.dtype.kind != "u":
            lazy = record(REGISTRY["maximum"], (lazy, lazy_of(0, lazy.type.dtype)), {})[0]
    return _switch("switch", cast(lazy, int32), branches, operands)


def _scalar(x: Any, what: str) -> Lazy:
    lazy = lazy_of(x)
    if lazy.type.shape != ():
        raise ShapeError.here(f"{what}: expected a scalar, got {show(lazy.type.shape)}")
    return lazy


def _switch(what: str, index: Lazy, functions: Sequence[Function], operands: Sequence[Any]) -> Any:
    if not functions:
        raise TreeError.here(f"{what}: expected at least one branch, got none")
    given = nest(tuple(operands), f"{what}: operands")
    bodies = [body_of(what, f, given.arguments()) for f in functions]
    dtypes = _common(bodies)
    first = bodies[0]
    for i, other in enumerate(bodies):
        names = _names(what, i)
        text = (
            f"{what}: expected branches whose results have the same structure and types ({names})"
        )
        agree(text, _agreed(first, dtypes), _agreed(other, dtypes))
    written = sorted({i for b in bodies for i in b.written})
    changed = tuple(dict.fromkeys(h for b in bodies for h in b.changed))
    outside = union(*[b.captured for b in bodies], [h.lazy for h in changed])
    branches = [_branch(b, given.types, outside, written, changed, dtypes) for b in bodies]
    found = record(_SWITCH, (index, *given.lazies, *outside), {"branches": tuple(branches)})
    _change(found[first.tree.size :], written, changed, flatten(operands)[0])
    usual = given.kinds[0] if given.kinds else Handle.default
    columns = zip(*[b.kinds for b in bodies], strict=True)
    kinds = [next((k for k in column if k is not None), usual) for column in columns]
    return tensors(first.tree, found[: first.tree.size], kinds)


def _common(bodies: Sequence[Body]) -> list[DType]:
    """The type of each result: that of the branches which return more than a Python number."""
    if len({b.tree.size for b in bodies}) > 1:
        return []
    found: list[DType] = []
    for i in range(bodies[0].tree.size):
        firm = [b.types[i].dtype for b in bodies if not b.weak[i]]
        soft = [b.types[i].dtype for b in bodies if b.weak[i]]
        found.append(firm[0] if firm else functools.reduce(promote, soft))
    return found


def _agreed(body: Body, dtypes: Sequence[DType]) -> tuple[Tree, list[TensorType]]:
    """The structure and the types of a branch's results, as they are when numbers give way."""
    rows = zip(body.types, body.weak, dtypes, strict=bool(dtypes))
    types = [TensorType(d, t.shape) if gives_way(w, t.dtype, d) else t for t, w, d in rows] or list(
        body.types
    )
    return body.tree, types


def _names(what: str, i: int) -> str:
    """The names of the first branch and another one, for messages."""
    return "false | true" if what == "cond" else f"branch 0 | branch {i}"


def _branch(
    body: Body, types: Sequence[Any], outside: Sequence[Lazy], written: Sequence[int],
    changed: Sequence[Handle], dtypes: Sequence[DType],
) -> Subgraph:  # fmt: skip
    """A branch that takes and returns what any of the branches captures and changes."""

    def run(*xs: Value) -> list[Value]:
        arguments = xs[: len(types)]
        held = dict(zip(outside, xs[len(types) :], strict=True))
        found = body.apply(arguments, held, dtypes)
        after = dict(zip(body.written, found.written, strict=True))
        become = dict(zip(body.changed, found.changed, strict=True))
        return [
            *found.result,
            *[after.get(i, arguments[i]) for i in written],
            *[become.get(h, held[h.lazy]) for h in changed],
        ]

    return traced(run, [*types, *[x.type for x in outside]])


def _change(
    found: Sequence[Lazy], written: Sequence[int], changed: Sequence[Handle], given: Sequence[Any]
) -> None:
    """Apply the branch's in-place changes of operands, then of outside tensors."""
    behind = iter(found)
    for i, lazy in zip(written, behind, strict=False):
        if isinstance(given[i], Handle):
            rewrite(given[i], lazy, "an operand")
    if changed:
        Handle.replace_all(changed, list(behind))
