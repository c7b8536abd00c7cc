"""cond, case, switch_case: the step runs only one branch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from weft import ops
from weft.errors import ArgumentError, DTypeError, TreeError
from weft.ir.dtype import bool_
from weft.ir.node import TensorType, Value
from weft.ir.shape import Shape, compatible, merge
from weft.ops.call import Subgraph, inline, trace
from weft.ops.control.agreement import lines
from weft.ops.declaration import calls_python
from weft.tf1.control.dependency import with_dependencies
from weft.tf1.control.region import Join, Region, inside, of_any_shape
from weft.tf1.elementwise.arithmetic import add_n, cast
from weft.tf1.framework.convert import constant, convert_to_tensor
from weft.tf1.framework.dtypes import int32
from weft.tf1.framework.graph import (
    computes_at_once,
    emit,
    fail,
    get_default_graph,
    name_scope,
)
from weft.tf1.framework.structure import flatten, outline, pack
from weft.tf1.framework.tensor import Operation, Tensor

Function = Callable[..., Any]


def cond(
    pred: Any, true_fn: Function | None = None, false_fn: Function | None = None,
    strict: bool = False, name: str | None = None, fn1: Function | None = None,
    fn2: Function | None = None,
) -> Any:  # fmt: skip
    """The result of `true_fn()` if `pred` is true, else of `false_fn()`.

    The step runs only that branch; assignments in the other one have no effect.

    Args:
        strict: keep a list of one tensor a list.
        fn1, fn2: deprecated names of the functions.

    Raises:
        DTypeError: `pred` is not a boolean tensor, or the results have different types.
        TreeError: the results have different structures.

    >>> import weft.tf1 as tf
    >>> with tf.Graph().as_default(), tf.Session() as session:
    ...     x = tf.placeholder(tf.float32, [])
    ...     y = tf.cond(x > 0, lambda: x, lambda: -x)
    ...     print(session.run(y, {x: -3.0}))
    3.0
    """
    first, second = true_fn or fn1, false_fn or fn2
    if not callable(first) or not callable(second):
        raise fail(DTypeError, f"cond: expected two functions, got {first!r} and {second!r}")
    if isinstance(pred, bool) and not computes_at_once():
        raise fail(DTypeError, "cond: expected a boolean tensor as pred, got a Python bool")
    with name_scope(name, "cond", [pred]):
        flag = convert_to_tensor(pred, name="pred")
        if flag.dtype.base_dtype.ir is not bool_ or not compatible(flag.value.shape, ()):
            raise fail(DTypeError, f"cond: expected a boolean scalar as pred, got {flag}")
        return _switch("cond", cast(flag, int32), [second, first], not strict)


def cond_by_selection(pred: Tensor, true_fn: Function, false_fn: Function) -> Any:
    """`cond` that runs both functions, unless one calls Python, and selects their results.

    A variable that one of them leaves as it is is then updated in place; `cond` has to copy it.
    """
    with name_scope(None, "cond", [pred]):
        return _switch("cond", cast(pred, int32), [false_fn, true_fn], True, both=True)


def switch_case(
    branch_index: Any,
    branch_fns: Any,
    default: Function | None = None,
    name: str = "switch_case",
) -> Any:
    """The result of the branch with this index.

    Args:
        branch_index: an int32 scalar.
        branch_fns: functions, pairs (index, function), or a dictionary of such.
        default: for any other index; by default the branch with the highest index.

    Raises:
        DTypeError: the index is not int32, or the results have different types.
        ArgumentError: there are no branches, or their indices are not 0, 1, 2, ...
    """
    branches = _numbered(branch_fns)
    if default is not None:
        branches.append(default)
    with name_scope(name, "switch_case", [branch_index]):
        index = convert_to_tensor(branch_index, name="branch_index", dtype=int32)
        if default is not None:  # an index that is too small also selects the default
            last = len(branches) - 1
            low = cast(index < 0, int32)
            index = index * (1 - low) + last * low
        return _switch("switch_case", index, branches, True)


def _numbered(branch_fns: Any) -> list[Function]:
    if isinstance(branch_fns, Mapping):
        branch_fns = list(branch_fns.items())
    found = list(branch_fns)
    if found and not callable(found[0]):
        pairs = sorted(found, key=lambda pair: pair[0])
        if [i for i, _ in pairs] != list(range(len(pairs))):
            raise fail(
                ArgumentError,
                f"switch_case: expected indices 0 to {len(pairs) - 1}, got {[i for i, _ in pairs]}",
            )
        found = [f for _, f in pairs]
    if not found or not all(map(callable, found)):
        raise fail(ArgumentError, f"switch_case: expected branches, got {branch_fns!r}")
    return found


def case(
    pred_fn_pairs: Any, default: Function | None = None, exclusive: bool = False,
    strict: bool = False, name: str = "case",
) -> Any:  # fmt: skip
    """The result of the first pair whose predicate is true, else of `default()`.

    Args:
        pred_fn_pairs: pairs (boolean scalar, function), or a dictionary of them.
        default: without one, a predicate must be true.
        exclusive: at most one predicate may be true.

    Raises:
        ArgumentError: there are no pairs.
        InvalidArgumentError: at execution, more or fewer predicates are true.
    """
    pairs = list(pred_fn_pairs.items() if isinstance(pred_fn_pairs, Mapping) else pred_fn_pairs)
    if not pairs:
        raise fail(ArgumentError, "case: expected at least one pair of predicate and function")
    functions = [f for _, f in pairs]
    rest = functions[-1] if default is None else default
    with name_scope(name, "case"):
        index = convert_to_tensor(len(pairs), dtype=int32)
        flags = [cast(convert_to_tensor(pred), int32) for pred, _ in pairs]
        for i, flag in reversed(list(enumerate(flags))):
            index = flag * i + (1 - flag) * index
        if exclusive:
            text = "case: expected at most one true predicate (exclusive=True)"
            index = _checked(index, add_n(flags) - 1, text)
        if default is None:
            text = "case: expected a true predicate, as there is no default="
            index = _checked(index, (1 - add_n(flags)) * len(flags), text)
        return _switch("case", index, [*functions, rest], not strict)


def _checked(index: Tensor, wrong: Tensor, text: str) -> Tensor:
    """The index of a branch, if `wrong` is not positive in a run."""

    def build(x: Value, count: Value) -> Value:
        return ops.check(x, ops.maximum(count, 0), text=text)

    return emit("Assert", [index, wrong], build, name="Assert")


def _switch(
    what: str, index: Tensor, functions: Sequence[Function], unpack: bool, both: bool = False
) -> Any:  # fmt: skip
    graph = get_default_graph()
    if computes_at_once(graph):
        chosen = int(index)  # pyright: ignore[reportArgumentType] -- it has its value
        result = functions[chosen if 0 <= chosen < len(functions) else -1]()
        return result[0] if unpack and isinstance(result, list) and len(result) == 1 else result
    results: list[Any] = []
    regions: list[Region] = []
    for function in functions:
        first = len(graph.ir.nodes)
        with inside(graph):
            result = function()
            tensors = [_result(x) for x in flatten([result])]
        results.append(result)
        regions.append(Region(graph, first, (), [t.used for t in tensors]))
    shapes = _agree(what, results, regions)
    join = Join(graph, regions)
    count = len(regions[0].outputs)

    def build(*values: Value) -> Any:
        branches = [_widened(join.function(r), shapes) for r in regions]
        run = _selected if selects else _chosen
        return join.after_assignments(run(values[0], [*now, *join.outer], branches), count)

    now = join.now()
    selects = both and not any([calls_python(n) for r in regions for n in r.nodes])
    selects = selects and all([[v.shape for v in r.outputs] == shapes for r in regions])
    op = graph.emit("If", [index], build, name="Merge")
    return _shown(results[0], op, unpack)


def _chosen(index: Value, xs: Sequence[Value], branches: Sequence[Subgraph]) -> Sequence[Value]:
    return ops.switch.all(index, *xs, branches=tuple(branches))


def _selected(index: Value, xs: Sequence[Value], branches: Sequence[Subgraph]) -> Sequence[Value]:
    """The results of the second of two branches where the index is not 0; both run."""
    first, second = [inline(branch, xs) for branch in branches]
    flag = ops.cast(index, dtype=bool_)
    return [ops.select(flag, y, x) for x, y in zip(first, second, strict=True)]


def _result(x: Any) -> Tensor:
    """A branch's result as a tensor; for an operation, that it has run."""
    if isinstance(x, Operation) and type(x) is Operation:
        return with_dependencies([x], constant(True))
    if x is None:
        return constant(True)
    return convert_to_tensor(x)


def _widened(branch: Subgraph, shapes: Sequence[Shape]) -> Subgraph:
    """The branch with results of less specific shapes, before its variables."""
    if all([y.shape == s for y, s in zip(branch.outputs, shapes, strict=False)]):
        return branch

    def run(*xs: Value) -> list[Value]:
        found = inline(branch, xs)
        wide = [of_any_shape(y, s) for y, s in zip(found, shapes, strict=False)]
        return [*wide, *found[len(wide) :]]

    return trace(run, branch.input_types)


def _agree(what: str, results: Sequence[Any], regions: Sequence[Region]) -> list[Shape]:
    """The static shapes that the results of all branches have."""
    kinds = [[v.type for v in r.outputs] for r in regions]
    for result, types in zip(results, kinds, strict=True):
        if outline(result) != outline(results[0]):
            raise fail(
                TreeError,
                f"{what}: expected branches that give the same structure, got\n"
                f"  {outline(results[0])}\n  {outline(result)}\n",
            )
        _fit(what, kinds[0], types)
    columns = [[t.shape for t in column] for column in zip(*kinds, strict=True)]
    hosted = any([calls_python(n) for r in regions for n in r.nodes])
    return [functools.reduce(_merged if hosted else _common, column) for column in columns]


def _merged(a: Shape, b: Shape) -> Shape:
    """The shape of results of which Python computes some, and tells their shape only then."""
    return merge(a, b) if compatible(a, b) else _common(a, b)


def _common(a: Shape, b: Shape) -> Shape:
    """The most specific shape that allows both."""
    if a is None or b is None or len(a) != len(b):
        return None
    return tuple([m if m == n else None for m, n in zip(a, b, strict=True)])


def _fit(what: str, left: Sequence[TensorType], right: Sequence[TensorType]) -> None:
    if all([a.dtype is b.dtype for a, b in zip(left, right, strict=True)]):
        return
    shown = lines([str(t) for t in left], [str(t) for t in right])
    raise fail(DTypeError, f"{what}: expected branches that give the same types:{shown}\n")


def _shown(result: Any, op: Operation, unpack: bool) -> Any:
    """The outputs in the structure of a branch's result."""
    leaves = flatten([result])
    if leaves and all([x is None or type(x) is Operation for x in leaves]):
        return op if len(leaves) == 1 else pack(result, [op] * len(leaves))
    found = pack([result], op.outputs)[0]
    alone = isinstance(found, list | tuple) and len(found) == 1 and not hasattr(found, "_fields")
    return found[0] if unpack and alone else found


__all__ = ["case", "cond", "switch_case"]
