"""Python inside a graph: `py_func`, `Print`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft import ops
from weft.tf1.convert import convert_to_tensor
from weft.tf1.dtypes import as_dtype
from weft.tf1.graph import get_default_graph, name_scope
from weft.tf1.tensor import Operation, Tensor
from weft.tf1.tensor_shape import as_shape


def py_func(
    func: Callable[..., Any],
    inp: Sequence[Any],
    Tout: Any,
    stateful: bool = True,
    name: str | None = None,
) -> Any:
    """An operation that calls a Python function on arrays.

    Args:
        func: gets an array an input and returns an array an output.
        inp: its inputs.
        Tout: the element type of its output, or a list of them. Shapes are not known: set_shape.

    Raises:
        UnknownError: when it runs, if the function raises; that exception is its cause.
    """
    several = isinstance(Tout, list | tuple)
    kinds = [as_dtype(t) for t in (Tout if several else [Tout])]
    found = host_function(
        "PyFunc" if stateful else "PyFuncStateless", func, inp, kinds, [None] * len(kinds), name
    )
    return found.outputs if several else found.outputs[0]


def host_function(
    kind: str,
    function: Callable[..., Any],
    inputs: Sequence[Any],
    dtypes: Sequence[Any],
    shapes: Sequence[Any],
    name: str | None = None,
    gradient: Callable[..., Any] | None = None,
    into: Operation | None = None,
) -> Operation:
    """An operation that calls Python, with what is known of its outputs."""
    with name_scope(name, kind, [t for t in inputs if isinstance(t, Tensor)]) as scope:
        tensors = [convert_to_tensor(t, name=f"input_{i}") for i, t in enumerate(inputs)]
        return get_default_graph().emit(
            kind,
            tensors,
            "host_call",
            name=scope,
            into=into,
            function=function,
            dtypes=tuple(as_dtype(d).ir for d in dtypes),
            shapes=tuple(as_shape(s).as_dims() for s in shapes),
            gradient=gradient,
        )


numpy_function = py_func


def Print(
    input_: Any,
    data: Sequence[Any],
    message: str | None = None,
    first_n: int | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> Tensor:
    """`input_`; when it is computed, `message` and `data` are printed to standard error.

    Args:
        first_n: print only so many times.
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
        return _passed_through("Print", tensor, items, show, scope)


def _passed_through(
    kind: str, tensor: Tensor, data: Sequence[Tensor], function: Callable[..., Any], scope: str
) -> Tensor:
    """An operation that hands on its first input after calling Python, transparent to gradients."""

    def build(x: Any, *more: Any) -> Any:
        return ops.host_call(
            x, *more, function=function, dtypes=(x.dtype,), shapes=(x.shape,), gradient=_first_only
        )

    return get_default_graph().emit(kind, [tensor, *data], build, name=scope).outputs[0]


def _first_only(g: Any, y: Any, x: Any, *more: Any) -> tuple[Any, ...]:
    return (g[0] if isinstance(g, tuple) else g, *[None] * len(more))


def _brief(array: Any, entries: int) -> str:
    flat = np.ravel(array)
    shown = flat if entries < 0 else flat[:entries]
    dots = "..." if len(shown) < len(flat) else ""
    return "[" + " ".join(str(v) for v in shown) + dots + "]"
