"""Random tensors: one stream per operation, reproducible from graph and operation seeds.

The numbers differ from TensorFlow's. As there, an operation with a seed (its own, or the graph's
with its position) gives the same sequence in every session; an operation without one does not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

from weft import ops
from weft.documentation import named
from weft.errors import DTypeError, GraphError
from weft.ir.node import Value
from weft.ops.random.counter_based import SEED
from weft.tf1.control.check import assert_less
from weft.tf1.framework import dtypes
from weft.tf1.framework.convert import (
    convert_to_tensor,
    is_tensor,
    shape_operand,
    static_value,
    unary,
)
from weft.tf1.framework.default_graph import control_dependencies
from weft.tf1.framework.dtypes import DType, as_dtype
from weft.tf1.framework.graph import emit, fail, get_default_graph, name_scope
from weft.tf1.framework.tensor import Tensor

__all__ = [
    "multinomial", "random_normal", "random_shuffle", "random_uniform", "set_random_seed",
    "truncated_normal",
]  # fmt: skip

DEFAULT_GRAPH_SEED = 87654321


def set_random_seed(seed: int | None) -> None:
    """Set the seed of the default graph."""
    get_default_graph().seed = seed


def get_seed(op_seed: int | None) -> tuple[int | None, int | None]:
    """The seeds of the next operation: the graph's and its own."""
    graph = get_default_graph()
    if graph.seed is None:
        return (None, None) if op_seed is None else (DEFAULT_GRAPH_SEED, op_seed)
    return graph.seed, graph.version if op_seed is None else op_seed


def stream(name: str, op_seed: int | None) -> Callable[[], Value]:
    """The counter of an operation's stream: all streams have one key, and start far apart.

    So equal operations share kernels and programs, whatever their seeds.
    """
    graph, seeds = get_default_graph(), get_seed(op_seed)
    key = (name[:-1] if name.endswith("/") else graph.unique_name(name, False)) + "/steps"
    start = None
    if seeds[0] is not None:
        digest = hashlib.sha256(repr(tuple(int(s or 0) for s in seeds)).encode()).digest()
        start = int.from_bytes(digest[:7], "little")
    return lambda: ops.counter(key=key, start=start)


class Dims(NamedTuple):
    """A shape as a tensor, and as an operand: numbers, or the value that computes it."""

    tensor: Tensor
    operand: Any


Draw = Callable[[Value, Any], Value]  # (counter, dims) -> value


def draw(kind: str, shape: Any, seed: int | None, name: str, make: Draw) -> Tensor:
    """A random operation: `make` gets a counter, and the shape."""
    tensor, dims = shape if isinstance(shape, Dims) else Dims(*shape_operand(shape, "shape"))
    count = stream(name, seed)
    return emit(kind, [tensor], lambda _: make(count(), dims), name=name, attrs={"seed": seed})


def _floating(dtype: Any, kind: str) -> DType:
    found = as_dtype(dtype)
    if not found.is_floating:
        raise fail(DTypeError, f"{kind}: expected a floating type, got {found.name}")
    return found


def random_uniform(
    shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = dtypes.float32,
    seed: int | None = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Uniform in [minval, maxval); [0, 1) by default. Integers need a `maxval`."""
    kind = as_dtype(dtype)
    if maxval is None:
        if kind.is_integer:
            raise fail(GraphError, f"random_uniform: expected maxval for {kind.name}, got None")
        maxval = 1
    with name_scope(name, "random_uniform", [shape, minval, maxval]) as scope:
        shape = Dims(*shape_operand(shape, "shape"))
        low = convert_to_tensor(minval, kind, name="min")
        high = convert_to_tensor(maxval, kind, name="max")
        if kind.is_integer:
            return _random_int(shape, low, high, kind, seed, scope)
        unit = draw(
            "RandomUniform", shape, seed, "RandomUniform",
            lambda counter, dims: ops.random_uniform(counter, SEED, dims, kind.ir),
        )  # fmt: skip
        if not is_tensor(minval) and not is_tensor(maxval) and (minval, maxval) == (0, 1):
            return unit
        return _scaled(unit, high - low, low, scope)


def _random_int(
    shape: Dims, low: Tensor, high: Tensor, kind: DType, seed: int | None, scope: str
) -> Tensor:
    bounds = [static_value(low), static_value(high)]
    if bounds[0] is None or bounds[1] is None:
        return _random_between(shape, low, high, kind, seed, scope)
    first, last = int(bounds[0]), int(bounds[1])
    if first >= last:
        raise fail(GraphError, f"random_uniform: expected minval < maxval, got {first} and {last}")
    return draw(
        "RandomUniformInt", shape, seed, scope,
        lambda counter, dims: ops.random_integers(counter, SEED, dims, first, last, kind.ir),
    )  # fmt: skip


def _random_between(
    shape: Dims, low: Tensor, high: Tensor, kind: DType, seed: int | None, scope: str
) -> Tensor:
    """Random integers whose bounds a run computes, and checks."""
    with control_dependencies([assert_less(low, high, message="random_uniform: minval < maxval")]):
        high = unary("Identity", ops.identity, high, "Identity")
    count = stream(scope, seed)
    return emit(
        "RandomUniformInt", [shape.tensor, low, high],
        lambda _, a, b: ops.random_integers(count(), SEED, shape.operand, a, b, kind.ir),
        name=scope, attrs={"seed": seed},
    )  # fmt: skip


def _scaled(unit: Tensor, scale: Any, offset: Any, scope: str) -> Tensor:
    product = emit("Mul", [unit, scale], "multiply", name="mul")
    return emit("AddV2", [product, offset], "add", name=scope)


def _normal(title: str, op: str, function: Any, doc: str):
    """Numbers of a distribution of mean 0 and deviation 1, scaled and shifted."""

    @named(title, doc)
    def normal(
        shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = dtypes.float32,
        seed: int | None = None, name: str | None = None,
    ) -> Tensor:  # fmt: skip
        floating = _floating(dtype, title)
        with name_scope(name, title, [shape, mean, stddev]) as scope:
            shape = Dims(*shape_operand(shape, "shape"))
            center = convert_to_tensor(mean, floating, name="mean")
            scale = convert_to_tensor(stddev, floating, name="stddev")
            unit = draw(
                op, shape, seed, op,
                lambda counter, dims: function(counter, SEED, dims, floating.ir),
            )  # fmt: skip
            return _scaled(unit, scale, center, scope)

    return normal


random_normal = _normal("random_normal", "RandomStandardNormal", ops.random_normal, "Normal.")
truncated_normal = _normal(
    "truncated_normal", "TruncatedNormal", ops.truncated_normal,
    "Truncated normal, within two standard deviations of the mean.",
)  # fmt: skip


def random_shuffle(value: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """The rows, shuffled."""
    with name_scope(name, "RandomShuffle", [value]) as scope:
        tensor = convert_to_tensor(value, name="value")
        count = stream(scope, seed)

        def build(x: Value) -> Value:
            rows: Any = None if x.shape is None else x.shape[0]
            rows = ops.shape_of(x)[0] if rows is None else rows
            order = ops.random_permutation(count(), SEED, rows)
            return ops.gather(x, order, axis=0)

        return emit("RandomShuffle", [tensor], build, name=scope)


def multinomial(
    logits: Any, num_samples: int, seed: int | None = None, name: str | None = None,
    output_dtype: Any = None,
) -> Tensor:  # fmt: skip
    """`num_samples` class numbers per row, drawn from softmax(logits)."""
    with name_scope(name, "multinomial", [logits]):
        tensor = convert_to_tensor(logits, name="logits")
        if tensor.shape.ndims is None:  # as where a temperature is fed
            tensor = unary("Identity", "identity", tensor, None)
            tensor.set_shape([None, None])
        kind = as_dtype(output_dtype or dtypes.int64).ir
        count = stream("Multinomial", seed)

        def build(x: Value) -> Value:
            found = ops.categorical(count(), SEED, x, int(num_samples))
            return found if found.dtype is kind else ops.cast(found, dtype=kind)

        return emit("Multinomial", [tensor], build, name="Multinomial")


def categorical(
    logits: Any, num_samples: int, dtype: Any = None, seed: int | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The newer name of `multinomial`."""
    return multinomial(logits, num_samples, seed, name, dtype)
