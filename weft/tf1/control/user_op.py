"""User-defined operations: a subclass of `Operation` in NumPy, or in TensorFlow functions.

In NumPy, with a gradient, it works in any graph and is differentiable:

    class Add(tf.Operation):
        def __init__(self, a, b):
            super().__init__([a, b])

        def forward(self, a, b):
            return a + b

        def backward(self, upstream_grad):
            return upstream_grad, upstream_grad

With `build(self, a, b)` instead, which takes and returns tensors, it is compiled.

The output's shape and type come from one call of `forward` on zeros, if the inputs' shapes are
known; pass `shape=` and `dtype=` to `super().__init__` to give them instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from weft import ops
from weft.errors import GraphError, UserOpError
from weft.ir.node import Value
from weft.tf1.control.gradient import conjugated
from weft.tf1.control.py_func import host_function
from weft.tf1.framework.convert import constant, convert_to_tensor
from weft.tf1.framework.dtypes import as_dtype, float32
from weft.tf1.framework.graph import created_here, fail, get_default_graph, graph_of, name_scope
from weft.tf1.framework.tensor import Operation, Tensor
from weft.tf1.framework.tensor_shape import as_shape

__all__ = ["Constant", "Placeholder", "topology_sort"]

Array = np.ndarray[Any, Any]


def construct(
    op: Any, inputs: Sequence[Any], name: str | None, shape: Any = None, dtype: Any = None
) -> None:
    """The part of `Operation.__init__` for subclasses."""
    kind = type(op).__name__
    if not hasattr(op, "forward") and not hasattr(op, "build"):
        raise fail(GraphError, f"{kind}: expected a method `forward` (arrays) or `build` (tensors)")
    graph = graph_of(inputs)
    with graph.as_default(), name_scope(name, kind, []) as scope:
        tensors = [convert_to_tensor(x, name=f"input_{i}") for i, x in enumerate(inputs)]
        if hasattr(op, "build"):
            _from_tensors(op, kind, tensors, scope)
        else:
            _from_arrays(op, kind, tensors, scope, shape, dtype)


Operation.construct = staticmethod(construct)


def _from_tensors(op: Any, kind: str, tensors: Sequence[Tensor], scope: str) -> None:
    result = op.build(*tensors)
    several = isinstance(result, list | tuple)
    outputs = [convert_to_tensor(t) for t in (result if several else [result])]

    def build(*_: Value) -> tuple[Value, ...]:
        return tuple(ops.identity(t.used) for t in outputs)

    get_default_graph().emit(kind, tensors, build, name=scope, into=op)


def _from_arrays(
    op: Any, kind: str, tensors: Sequence[Tensor], scope: str, shape: Any, dtype: Any
) -> None:
    shapes, dtypes = _outputs(op, kind, tensors, shape, dtype)
    run = _Run(op, len(shapes))
    gradient = run.gradient if hasattr(op, "backward") else None
    host_function(kind, run.forward, tensors, dtypes, shapes, scope, gradient, into=op)


def _outputs(
    op: Any, kind: str, tensors: Sequence[Tensor], shape: Any, dtype: Any
) -> tuple[list[Any], list[Any]]:
    """Shapes and types of the outputs: given, or from `forward` on zeros."""
    if shape is not None and dtype is not None:
        several = isinstance(dtype, list | tuple)
        return (list(shape), list(dtype)) if several else ([shape], [dtype])
    if any(t.shape.ndims is None for t in tensors):
        raise fail(
            GraphError,
            f"{kind}: expected inputs of known rank; or pass shape= and dtype= to super().__init__",
        )
    sizes = iter(_TELLING)
    origin: dict[int, tuple[int, int]] = {}  # the unknown dimension that a size stands for
    zeros: list[Array] = []
    for i, t in enumerate(tensors):
        dims: list[int] = []
        for axis, size in enumerate(t.shape.as_list()):
            dims.append(next(sizes) if size is None else size)
            if size is None:
                origin[dims[-1]] = (i, axis)
        zeros.append(np.zeros(dims, t.dtype.ir.numpy))
    arrays = _on_zeros(op, kind, _shared(zeros, origin))
    kinds = [_type_of(a, tensors) if dtype is None else dtype for a in arrays]
    found = [tuple(origin.get(d, d) for d in a.shape) for a in arrays]
    return (found if shape is None else [shape]), kinds


# sizes for unknown dimensions: primes, recognizable in the result's shape
_TELLING = (1009, 1013, 1019, 1021, 1031, 1033, 1039, 1049, 1051, 1061, 1063, 1069)


def _shared(zeros: list[Array], origin: dict[int, tuple[int, int]]) -> list[Array]:
    """Unknown first dimensions are taken to be the same batch size."""
    batch = next((size for size, (_, axis) in origin.items() if axis == 0), None)
    if batch is None:
        return zeros
    return [
        np.zeros((batch, *z.shape[1:]), z.dtype) if z.shape and z.shape[0] in origin else z
        for z in zeros
    ]


def _on_zeros(op: Any, kind: str, zeros: Sequence[Array]) -> list[Array]:
    try:
        with np.errstate(all="ignore"):
            found = op.forward(*zeros)
    except (MemoryError, RecursionError):
        raise
    except Exception as error:
        message = f"{kind}: forward raised {type(error).__name__} on zeros: {error}"
        raise UserOpError(message + created_here()) from error
    return [np.asarray(y) for y in (found if isinstance(found, list | tuple) else [found])]


def _type_of(array: Array, tensors: Sequence[Tensor]) -> Any:
    """A result's type on arrays; float64 from inputs of another type becomes that type."""
    if array.dtype == np.float64 and tensors and tensors[0].dtype.is_floating:
        return tensors[0].dtype.base_dtype
    return as_dtype(array.dtype)


class _Run:
    """The forward and backward host functions of a user-defined operation."""

    def __init__(self, op: Any, outputs: int) -> None:
        self.op = op
        self.outputs = outputs
        self.dtypes: list[Any] = []

    def forward(self, *arrays: Array) -> Any:
        found = self.op.forward(*arrays)
        several = isinstance(found, list | tuple)
        kinds = [t.dtype.ir.numpy for t in self.op.outputs]
        results = [_cast(y, k) for y, k in zip(found if several else [found], kinds, strict=True)]
        return results if len(results) > 1 else results[0]

    def gradient(self, g: Any, y: Any, *xs: Value) -> list[Any]:
        """Cotangents of the inputs, by a host call that runs `forward`, then `backward`.

        Running `forward` again ensures that `backward` finds on `self` what it stored for these
        very inputs, whatever else ran in between.
        """
        gs = [conjugated(part) for part in (g if isinstance(g, tuple) else (g,))]
        count = len(gs)
        wanted = [i for i, x in enumerate(xs) if x.dtype.is_floating or x.dtype.is_complex]

        def backward(*arrays: Array) -> Any:
            ups, inputs = arrays[:count], arrays[count:]
            self.op.forward(*inputs)
            found = self.op.backward(*ups)
            grads = list(found) if isinstance(found, list | tuple) else [found]
            if len(grads) != len(inputs):
                raise ValueError(f"backward: expected {len(inputs)} gradients, got {len(grads)}")
            return [_fitted(grads[i], inputs[i]) for i in wanted]

        if not wanted:
            return [None] * len(xs)
        node = ops.host_call.node(
            (*gs, *xs),
            {
                "function": backward,
                "dtypes": tuple(xs[i].dtype for i in wanted),
                "shapes": tuple(xs[i].shape for i in wanted),
                "gradient": None,
            },
        )
        made = dict(zip(wanted, map(conjugated, node.outputs), strict=True))
        return [made.get(i) for i in range(len(xs))]


def _cast(value: Any, kind: Any) -> Array:
    return np.asarray(value).astype(kind, copy=False)


def _fitted(gradient: Any, x: Array) -> Array:
    """A gradient with the shape and type of its input; `None` is zero."""
    if gradient is None:
        return np.zeros_like(x)
    array = np.asarray(gradient)
    if array.shape != x.shape:
        try:
            wide = np.broadcast_shapes(array.shape, x.shape)
        except ValueError:
            raise ValueError(
                f"backward: expected a gradient of shape {x.shape}, got {array.shape}"
            ) from None
        array = _summed(np.broadcast_to(array, wide), x.shape)
    return array.astype(x.dtype)


def _summed(array: Array, shape: tuple[int, ...]) -> Array:
    """A gradient summed over the axes along which its input was broadcast."""
    array = array.sum(axis=tuple(range(array.ndim - len(shape))))
    wide = tuple(i for i, d in enumerate(shape) if d == 1 and array.shape[i] != 1)
    return array.sum(axis=wide, keepdims=True)


class Placeholder(Operation):
    """An operation whose value must be fed in every run."""

    def __init__(self, shape: Any = None, dtype: Any = float32, name: str | None = None) -> None:
        kind, dims = as_dtype(dtype), as_shape(shape).as_dims()
        get_default_graph().emit(
            "Placeholder", (), "placeholder", dtype=kind.ir, shape=dims,
            name=name or "Placeholder", into=self,
        )  # fmt: skip


class Constant(Operation):
    """An operation with a known value."""

    def __init__(self, value: Any, dtype: Any = None, name: str | None = None) -> None:
        with name_scope(name, "Constant") as scope:
            tensor = constant(value, dtype, name="value")
            get_default_graph().emit("Identity", [tensor], "identity", name=scope, into=self)


def topology_sort(operation: Any) -> list[Operation]:
    """All operations that `operation` needs, in topological order, itself last."""
    order: list[Operation] = []
    seen: set[int] = set()
    root = operation if isinstance(operation, Operation) else convert_to_tensor(operation).op
    stack: list[tuple[Operation, bool]] = [(root, False)]
    while stack:
        op, ready = stack.pop()
        if ready:
            order.append(op)
            continue
        if id(op) in seen:
            continue
        seen.add(id(op))
        stack.append((op, True))
        before = [*(t.op for t in op.inputs), *op.control_inputs]
        stack.extend((b, False) for b in reversed(before) if id(b) not in seen)
    return order
