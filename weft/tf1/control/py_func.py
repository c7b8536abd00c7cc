"""Python functions in a graph: `py_func`, `Print`."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import ops
from weft.ir.dtype import DType
from weft.ir.node import Value
from weft.ir.shape import Shape
from weft.ops.boundary.state import called
from weft.tf1.framework.convert import convert_to_tensor, is_tensor
from weft.tf1.framework.dtypes import as_dtype
from weft.tf1.framework.dynamic_shape import dimension
from weft.tf1.framework.graph import computes_at_once, emit, get_default_graph, name_scope
from weft.tf1.framework.tensor import Operation, Tensor

__all__ = ["Print", "numpy_function", "py_func", "py_function"]


def py_func(
    func: Callable[..., Any], inp: Sequence[Any], Tout: Any, stateful: bool = True,
    name: str | None = None,
) -> Any:  # fmt: skip
    """An operation that calls a Python function on arrays.

    Args:
        func: gets an array per input and returns an array per output.
        inp: its inputs.
        Tout: the element type of its output, or a list of them.

    Call `set_shape` on the results where their shapes are known: what reads them is then one
        program with what comes before; otherwise the function is called between two programs.

    Raises:
        UnknownError: at execution, if the function raises; its cause is that exception.
    """
    several = isinstance(Tout, list | tuple)
    kinds = [as_dtype(t) for t in (Tout if several else [Tout])]
    found = host_function(
        "PyFunc" if stateful else "PyFuncStateless", func, inp, kinds, [None] * len(kinds), name
    )
    return found.outputs if several else found.outputs[0]


def py_function(func: Callable[..., Any], inp: Sequence[Any], Tout: Any, name: Any = None) -> Any:
    """An operation that calls a function of tensors in eager execution.

    Args:
        func: gets a tensor per input, with its value, and returns one, or a list of them.
        inp: its inputs.
        Tout: the element type of its output, or a list of them.
        name: of the operation.
    """
    several = isinstance(Tout, list | tuple)
    kinds: list[Any] = [as_dtype(t) for t in (Tout if several else [Tout])]

    def called(*arrays: Any) -> Any:
        found = func(*[convert_to_tensor(array) for array in arrays])
        parts = list(found) if isinstance(found, list | tuple) else [found]
        if computes_at_once() and any(map(is_tensor, arrays)):
            tensors = [convert_to_tensor(y, kind) for y, kind in zip(parts, kinds, strict=True)]
        else:
            tensors = [np.asarray(y, kind.as_numpy_dtype)
                       for y, kind in zip(parts, kinds, strict=True)]  # fmt: skip
        return tensors if several else tensors[0]

    if computes_at_once():
        return called(*[convert_to_tensor(x) for x in inp])
    return py_func(called, inp, Tout, name=name)


def host_function(
    kind: str, function: Callable[..., Any], inputs: Sequence[Any], dtypes: Sequence[Any],
    shapes: Sequence[Any], name: str | None = None, gradient: Callable[..., Any] | None = None,
    into: Operation | None = None, alike: bool = True,
) -> Operation:  # fmt: skip
    """An operation that calls Python, with what is known of its outputs.

    A shape is `None`, or dimensions: a number, `None`, or a pair (input, axis) for a dimension
        equal to one of an input.

    Args:
        alike: whether an unknown dimension is that of the first input where it is also unknown.
    """
    kinds = tuple(as_dtype(d).ir for d in dtypes)
    graph = get_default_graph()

    def build(*values: Value, dims: Sequence[Any] = shapes) -> tuple[Value, ...]:
        found = [_shape_for(d, values, alike) for d in dims]
        hosted = any(d.is_hosted for d in (*kinds, *[v.dtype for v in values]))
        if hosted or not (graph.in_body or all(map(_is_told, found))):
            called = functools.partial(_between, function, kinds)
            return ops.host_value.all(
                *values, function=called, dtypes=kinds, gradient=gradient, title=kind,
                shapes=tuple([_static(s) for s in found]),
            )  # fmt: skip
        return ops.host_call.all(
            *values, function=function, dtypes=kinds, shapes=_packed(found), gradient=gradient
        )

    with name_scope(name, kind, [t for t in inputs if isinstance(t, Tensor)]) as scope:
        tensors = [convert_to_tensor(t, name=f"input_{i}") for i, t in enumerate(inputs)]
        op = graph.emit(kind, tensors, build, name=scope, into=into)
    rebuilders = graph.keys.setdefault("set_shape", {})
    rebuilders[op] = functools.partial(_rebuild, build)
    return op


def _is_told(dims: Any) -> bool:
    """Whether a shape is known before the function is called."""
    return dims is not None and None not in dims


def _static(dims: Any) -> Any:
    return None if dims is None else tuple(None if isinstance(d, Value) else d for d in dims)


def _between(function: Callable[..., Any], dtypes: Sequence[DType], *arrays: Any) -> Any:
    """The results of a function that is called between programs; scalar texts as bytes."""
    given = [x[()] if x.dtype.hasobject and not x.ndim else x for x in arrays]
    found = called(*given, function=function, dtypes=dtypes)
    return found if len(found) != 1 else found[0]


def _rebuild(build: Callable[..., Any], tensor: Tensor, shape: Shape) -> None:
    """Replace a call by one with a more specific output shape, which it needs before it runs."""
    op, graph = tensor.op, tensor.graph
    dims = [shape if t is tensor else t.used.shape for t in op.outputs]
    with graph.building(op.name, op.control_inputs):
        values = build(*[t.used for t in op.inputs], dims=dims)
    for output, value in zip(op.outputs, values, strict=True):
        graph.rebind(output, value)
    op.finish(op.outputs, (values[0].node,))


def _shape_for(dims: Any, values: Sequence[Value], alike: bool) -> Any:
    """Dimensions, with values for those that depend on an input at execution."""
    if dims is None:
        return None
    found: list[Any] = []
    for axis, size in enumerate(dims):
        if isinstance(size, tuple):
            found.append(dimension(values[size[0]], size[1]))
        elif size is None and alike:
            found.append(_open_dimension(values, axis))
        else:
            found.append(size)
    return found


def _open_dimension(values: Sequence[Value], axis: int) -> Any:
    """The dimension of the first value where it is unknown, if any."""
    found = [v for v in values if (v.rank or 0) > axis and v.shape and v.shape[axis] is None]
    return dimension(found[0], axis) if found else None


def _packed(shapes: list[Any]) -> Any:
    """Shapes as one attribute: plain, or of equal ranks if a dimension is a value."""
    computed = any(isinstance(d, Value) for s in shapes if s is not None for d in s)
    ranks = {None if s is None else len(s) for s in shapes}
    if computed and (len(ranks) > 1 or None in ranks):
        return tuple(
            None if s is None else tuple(None if isinstance(d, Value) else d for d in s)
            for s in shapes
        )
    return tuple(None if s is None else tuple(s) for s in shapes)


numpy_function = py_func


def Print(
    input_: Any, data: Sequence[Any], message: str | None = None, first_n: int | None = None,
    summarize: int | None = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """`input_`; when it is computed, `message` and `data` are printed to standard error.

    Args:
        first_n: print only this many times.
        summarize: how many entries of each tensor to print; 3 by default.
    """
    printed = 0
    entries = 3 if summarize is None else summarize

    def show(x: Any, *arrays: Any) -> Any:
        nonlocal printed
        if first_n is None or first_n < 0 or printed < first_n:
            printed += 1
            text = "".join(_brief(a, entries) for a in arrays)
            print((message or "") + text, file=sys.stderr)
        return x

    with name_scope(name, "Print", [input_]) as scope:
        tensor = convert_to_tensor(input_, name="input")
        items = [convert_to_tensor(d) for d in data]
        return passed_through("Print", tensor, items, show, scope)


def passed_through(
    kind: str, tensor: Tensor, data: Sequence[Tensor], function: Callable[..., Any], scope: str
) -> Tensor:
    """An operation that passes its first input on after calling Python; gradients flow through."""

    def build(x: Any, *more: Any) -> Any:
        return ops.host_call(
            x, *more, function=function, dtypes=(x.dtype,), shapes=(x.shape,), gradient=_first_only
        )

    return emit(kind, [tensor, *data], build, name=scope)


def _first_only(g: Any, y: Any, x: Any, *more: Any) -> tuple[Any, ...]:
    return (g[0] if isinstance(g, tuple) else g, *[None] * len(more))


def _brief(array: Any, entries: int) -> str:
    flat = np.ravel(array)
    shown = flat if entries < 0 else flat[:entries]
    dots = "..." if len(shown) < len(flat) else ""
    return "[" + " ".join(str(v) for v in shown) + dots + "]"
