"""The one device, abstract evaluation, callbacks, and settings without effect."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.eager.record.pending.state import trace
from weft.eager.tensor.autograd.tracing import Traced, subgraph_plan, tracers
from weft.eager.tensor.dispatch import lazy_of, wrap
from weft.errors import ArgumentError
from weft.func.function import DATA, Arguments, take_apart, trace_function
from weft.func.tree import flatten
from weft.ir.dtype import as_dtype, float32, uint32
from weft.ir.graph import Graph
from weft.ir.node import TensorType
from weft.ir.printer import format_graph
from weft.ir.shape import known
from weft.jax.array import Array, as_array, canonical
from weft.jax.config import without_effect
from weft.jax.host import several
from weft.jax.key import KEY_DTYPE, Keys, keys_of
from weft.jax.place import CPU, Device
from weft.jax.transform import arrays
from weft.jax.tree_util import tree_map
from weft.ops.boundary.state import placeholder
from weft.ops.call import inline

__all__ = [
    "Device", "ShapeDtypeStruct", "block_until_ready", "checking_leaks", "clear_caches",
    "closure_convert", "copy_to_host_async", "debug_infs", "debug_nans", "default_backend",
    "default_device", "default_matmul_precision", "default_prng_impl", "device_count",
    "device_get", "device_put", "devices", "effects_barrier", "ensure_compile_time_eval",
    "eval_shape", "host_count", "host_id", "host_ids", "io_callback", "live_arrays",
    "local_device_count", "local_devices", "log_compiles", "make_jaxpr", "make_mesh", "named_scope",
    "numpy_dtype_promotion", "numpy_rank_promotion", "print_environment_info", "process_count",
    "process_index", "process_indices", "pure_callback", "transfer_guard", "typeof",
]  # fmt: skip


def devices(backend: str | None = None) -> list[Device]:
    """The devices: the CPU.

    Raises:
        RuntimeError: another backend.
    """
    if backend not in (None, "cpu"):
        raise RuntimeError(f"Unknown backend {backend}: there is no such device, only the CPU")
    return [CPU]


local_devices = devices


def default_backend() -> str:
    """The kind of device: `cpu`."""
    return "cpu"


def device_count(backend: str | None = None) -> int:
    """How many devices there are: 1."""
    return len(devices(backend))


local_device_count = process_count = host_count = device_count


def process_index(backend: str | None = None) -> int:
    """The number of this process: 0."""
    return devices(backend)[0].process_index


host_id = process_index


def process_indices(backend: str | None = None) -> list[int]:
    """The numbers of all processes."""
    return [d.process_index for d in devices(backend)]


host_ids = process_indices


def device_put(x: Any, device: Any = None, *, src: Any = None, **_: Any) -> Any:
    """A pytree with its leaves as arrays."""
    without_effect("device_put", device=device, src=src)
    return tree_map(_placed, x)


def _placed(x: Any) -> Any:
    return as_array(np.asarray(x) if isinstance(x, bool) else x)


def device_get(x: Any) -> Any:
    """A pytree with its arrays as NumPy's."""
    return tree_map(lambda leaf: np.asarray(leaf) if isinstance(leaf, Array) else leaf, x)


def block_until_ready(x: Any) -> Any:
    """A pytree whose arrays are computed."""
    return tree_map(lambda leaf: leaf.block_until_ready() if isinstance(leaf, Array) else leaf, x)


def copy_to_host_async(x: Any) -> Any:
    """A pytree: values are on the host."""
    return x


def live_arrays(platform: str | None = None) -> list[Any]:
    """Nothing is known of arrays that others hold: an empty list."""
    devices(platform)
    return []


def effects_barrier() -> None:
    """Nothing: callbacks run in order."""


clear_caches = effects_barrier


def print_environment_info(return_string: bool = False) -> str | None:
    """The version."""
    text = "weft.jax on CPU"
    if return_string:
        return text
    print(text)
    return None


# Abstract evaluation


class ShapeDtypeStruct:
    """A shape and a dtype: a leaf."""

    def __init__(
        self, shape: Any, dtype: Any, *, sharding: Any = None, weak_type: bool = False, **_: Any
    ) -> None:
        self.shape, self.dtype = tuple(shape), dtype if dtype is KEY_DTYPE else canonical(dtype)
        self.sharding, self.weak_type = sharding, weak_type

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ShapeDtypeStruct):
            return False
        return self.shape == other.shape and self.dtype is other.dtype

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def to_tangent_aval(self) -> ShapeDtypeStruct:
        """The shape and dtype of tangents."""
        inexact = self.dtype is not KEY_DTYPE and self.dtype.is_inexact
        return self if inexact else ShapeDtypeStruct(self.shape, float32)

    def __repr__(self) -> str:
        return f"ShapeDtypeStruct(shape={tuple(self.shape)}, dtype={self.dtype})"


def typeof(x: Any) -> ShapeDtypeStruct:
    """The shape and dtype of an array."""
    y = as_array(x)
    return ShapeDtypeStruct(tuple(y.shape), y.dtype)


def _traced(fun: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    leaves, tree = flatten((args, kwargs))
    types: list[TensorType] = []
    static: list[Any] = []
    likes: list[Any] = []
    usual = as_array(np.zeros(0, np.float32))
    for x in leaves:
        y = x if isinstance(x, ShapeDtypeStruct) else as_array(x)
        if isinstance(y, ShapeDtypeStruct | Array):
            keys = y.dtype is KEY_DTYPE
            dtype, more = (uint32, (2,)) if keys else (canonical(as_dtype(y.dtype)), ())
            types.append(TensorType(dtype, (*y.shape, *more)))
            likes.append(y if isinstance(y, Array) else keys_of(usual) if keys else usual)
            static.append(DATA)
        else:
            static.append(x)
    apart = Arguments(tree, tracers(types), tuple(static), tuple(likes))
    return trace_function(lambda *a, **k: arrays(fun(*a, **k)), apart)


def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The shapes and dtypes of a function's result; nothing is computed.

    >>> eval_shape(lambda x: x @ x.T, ShapeDtypeStruct((2, 3), "float32"))
    ShapeDtypeStruct(shape=(2, 2), dtype=float32)
    """
    traced = _traced(fun, args, kwargs)
    types, kinds = traced.function.output_types, traced.result.kinds
    return traced.result.with_tensors(list(map(_struct, types, kinds)))


def _struct(of: TensorType, kind: type[Any]) -> ShapeDtypeStruct:
    if issubclass(kind, Keys):
        return ShapeDtypeStruct(known(of.shape)[:-1], KEY_DTYPE)
    return ShapeDtypeStruct(known(of.shape), of.dtype)


class Jaxpr:
    """A traced function; printing it shows Weft's graph.

    Attributes:
        consts: the arrays from outside that it uses.
    """

    def __init__(self, traced: Traced) -> None:
        self.function, self.result = traced.function, traced.result
        self.consts = [wrap(x, as_array(np.zeros(0, np.float32))) for x in traced.captured]

    @property
    def jaxpr(self) -> Jaxpr:
        """The function itself."""
        return self

    @property
    def eqns(self) -> tuple[Any, ...]:
        """Its operations."""
        return self.function.nodes

    @property
    def in_avals(self) -> list[Any]:
        """Types of the inputs."""
        types = self.function.input_types
        return list(types[: len(types) - len(self.consts)])

    @property
    def out_avals(self) -> list[Any]:
        """Types of the outputs."""
        return list(self.function.output_types)

    def __str__(self) -> str:
        graph = Graph()
        with graph.as_default():
            types = self.function.input_types
            inputs = [placeholder(dtype=t.dtype, shape=t.shape) for t in types]
            inline(self.function, inputs)
        return format_graph(graph)

    __repr__ = __str__


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any], *args: Any, **_: Any) -> list[Any]:
    """The results of a traced function, as a flat list.

    Args:
        consts: in place of the arrays from outside that it used.

    >>> import weft.jax as jax
    >>> double = jax.make_jaxpr(lambda x: {"y": 2 * x})(1.0)
    >>> eval_jaxpr(double.jaxpr, double.consts, 3.0)
    [Array(6., dtype=float32)]
    """
    pairs = zip((*args, *consts), jaxpr.function.input_types, strict=True)
    xs = [lazy_of(x, t.dtype) for x, t in pairs]
    return jaxpr.result.tensors(trace.now.record(subgraph_plan(jaxpr.function), tuple(xs)))


def make_jaxpr(
    fun: Callable[..., Any], static_argnums: Any = (), return_shape: bool = False, **_: Any
) -> Callable[..., Any]:
    """A function that returns the graph of `fun` for its arguments, as Weft prints it."""
    fixed = [static_argnums] if isinstance(static_argnums, int) else list(static_argnums)

    @functools.wraps(fun)
    def made(*args: Any, **kwargs: Any) -> Any:
        def whole(*free: Any, **named: Any) -> Any:
            rest = iter(free)
            return fun(*[x if i in fixed else next(rest) for i, x in enumerate(args)], **named)

        free = [x for i, x in enumerate(args) if i not in fixed]
        traced = _traced(whole, free, kwargs)
        found = Jaxpr(traced)
        return (found, eval_shape(whole, *free, **kwargs)) if return_shape else found

    return made


def closure_convert(
    fun: Callable[..., Any], *examples: Any
) -> tuple[Callable[..., Any], list[Any]]:
    """The function, and no values: it keeps what it closes over."""
    without_effect("closure_convert", examples=examples)
    return fun, []


# Callbacks


def pure_callback(
    callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any, sharding: Any = None,
    vmap_method: str | None = None, vectorized: bool = False, **kwargs: Any,
) -> Any:  # fmt: skip
    """A function of NumPy's arrays, called when the program runs.

    Args:
        result_shape_dtypes: a pytree of shapes and dtypes of its results.
        vmap_method: `expand_dims`, `broadcast_all` and the like call it once for all examples.
    """
    without_effect("pure_callback", sharding=sharding)
    shapes, tree = flatten(result_shape_dtypes)
    apart = take_apart(arrays((args, kwargs)))
    kinds = [(as_dtype(s.dtype), tuple(s.shape)) for s in shapes]

    def call(*values: Any) -> Any:
        given, named = apart.with_tensors(values)
        return tuple([np.asarray(y) for y in flatten(callback(*given, **named))[0]])

    wide = vectorized or vmap_method not in (None, "sequential")
    xs = [wrap(x, like) for x, like in zip(apart.lazies, apart.likes, strict=True)]
    return tree.build(several(call, xs, kinds, wide, when_run=True))


# Settings without an effect


@contextlib.contextmanager
def _nothing(*_: Any, **__: Any) -> Iterator[None]:
    yield


default_device = default_matmul_precision = default_prng_impl = debug_nans = debug_infs = _nothing
ensure_compile_time_eval = checking_leaks = log_compiles = transfer_guard = _nothing
numpy_dtype_promotion = numpy_rank_promotion = _nothing


class named_scope(contextlib.ContextDecorator):
    """A name for what is computed inside; it has no effect."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


def make_mesh(axis_shapes: Any, axis_names: Any, *, devices: Any = None, **_: Any) -> Any:
    """A mesh of one device, with names of axes.

    Raises:
        ArgumentError: there are fewer devices than it has places.
    """
    there = np.array([CPU] if devices is None else list(devices))
    if math.prod(axis_shapes) > there.size:
        raise ArgumentError.here(
            f"make_mesh: expected a product of mesh_shape {tuple(axis_shapes)} of at most "
            f"{there.size}, the number of devices"
        )
    return Mesh(there.reshape(tuple(axis_shapes)), axis_names)


@dataclass
class Mesh:
    """Devices with names of axes; a context without an effect."""

    devices: Any
    axis_names: Any

    def __enter__(self) -> Mesh:
        return self

    def __exit__(self, *_: object) -> None:
        return None


def io_callback(
    callback: Callable[..., Any], result_shape_dtypes: Any, *args: Any, ordered: bool = False,
    **kwargs: Any,
) -> Any:  # fmt: skip
    """`pure_callback`: functions are called in order when the program runs."""
    without_effect("io_callback", ordered=ordered)
    return pure_callback(callback, result_shape_dtypes, *args, **kwargs)
