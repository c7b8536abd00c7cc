"""Runs launches on arrays without the runtime: chunks in any order, buffers between guard bytes."""

from __future__ import annotations

import ctypes
import functools
import itertools
import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from weft import config
from weft.codegen import llvm
from weft.codegen.target import Target
from weft.ir.dtype import as_dtype
from weft.ir.graph import Graph
from weft.ir.node import Node, Value
from weft.ir.shape import known
from weft.ops.declaration import op_of
from weft.passes.group import Group
from weft.passes.launch import ERROR, SYMBOL, Kernel, Launch, Scratch
from weft.runtime.compilation.cache import Cache, digest
from weft.runtime.compilation.compiler import key_of

Array = np.ndarray[Any, Any]
GUARD = 192
THREADS = 3
_cache = Cache(str(config.get("cache")))
_functions: dict[tuple[str, str], Any] = {}


class OutOfBoundsError(AssertionError):
    """A kernel wrote where it must not."""


class Memory:
    """An array between guard bytes, at an address that is a multiple of `align` plus `skew`."""

    def __init__(self, array: Array, skew: int = 0) -> None:
        size = array.nbytes
        self.raw = np.empty(size + 2 * GUARD + 128, np.uint8)
        start = GUARD + (-(self.raw.ctypes.data + GUARD)) % 64 + skew
        self.slice = slice(start, start + size)
        self.shape, self.dtype = array.shape, array.dtype
        self.raw[:start] = self.raw[start + size :] = 0xA5
        self.array[...] = array

    @property
    def address(self) -> int:
        return self.raw.ctypes.data + self.slice.start

    @property
    def array(self) -> Array:
        return self.raw[self.slice].view(self.dtype).reshape(self.shape)

    def check(self, name: str) -> None:
        guards = (self.raw[: self.slice.start], self.raw[self.slice.stop :])
        if any((g != 0xA5).any() for g in guards):
            raise OutOfBoundsError(f"{name}: bytes around the buffer changed")


def object_code(ir: str, target: Target) -> bytes:
    """What the compiler processes make of a kernel, kept from one run of the tests to the next."""
    llvm.tune()
    key = digest(SYMBOL, key_of(Kernel("", ir), target))  # theirs has another symbol
    found = _cache.load(key)
    if found is None:
        found = llvm.to_object(ir, target.cpu, target.features)
        _cache.store({key: found})
    return found


@functools.cache
def _library() -> llvm.Library:
    """One for all kernels: each takes half a megabyte."""
    return llvm.Library()


def function(ir: str, target: Target) -> Any:
    """The compiled kernel as a ctypes function."""
    key = (Kernel("", ir).digest, target.cpu)  # texts would take most of the memory
    if key not in _functions:
        address = _library().link({SYMBOL: object_code(ir, target)})[SYMBOL]
        kind = ctypes.CFUNCTYPE(
            None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64
        )
        _functions[key] = kind(address)
    return _functions[key]


def execute(
    launches: Sequence[Launch],
    inputs: Mapping[Value, Array],
    target: Target,
    seed: int | None = None,
    inplace: bool = False,
    skew: int = 0,
    make: type[Memory] = Memory,
) -> dict[Value, Array]:
    """Values written by the launches.

    Args:
        seed: with one, chunks run in random order, in random runs, as random threads.
        inplace: let outputs take the memory of inputs wherever a launch allows it.
        skew: offset of all buffers from a cache line, in bytes.
        make: makes all buffers but those that share memory.
    """
    memory: dict[Any, Memory] = {v: make(a, skew) for v, a in inputs.items()}
    written: list[Value] = []
    for launch in launches:
        _place(launch, memory, inplace, skew, make)
        written += [launch.args[n] for n in launch.writes if isinstance(launch.args[n], Value)]
        slots = (ctypes.c_int64 * max(len(launch.args), 1))(
            *[a if isinstance(a, int) else memory[a].address for a in launch.args]
        )
        run = function(launch.kernel.ir, target)
        for begin, end, thread in _calls(launch.chunks, seed):
            run(ctypes.addressof(slots), begin, end, thread)
        for a in launch.args:
            if not isinstance(a, int):
                memory[a].check(launch.kernel.name)
    return {v: memory[v].array.copy() for v in written}


def _place(
    launch: Launch, memory: dict[Any, Memory], inplace: bool, skew: int, make: type[Memory]
) -> None:
    used: set[int] = set()
    for n, a in enumerate(launch.args):
        if isinstance(a, int) or a in memory:
            continue
        if isinstance(a, Scratch):
            size = a.size * (THREADS if a.per_thread else 1)
            fill = 0 if a is ERROR else 0xCD
            memory[a] = make(np.full(size, fill, np.uint8))
            continue
        host = next((r for w, r in launch.inplace if w == n and r not in used), None)
        if inplace and host is not None:
            used.add(host)
            shared = memory[launch.args[host]]
            memory[a] = Memory.__new__(Memory)
            memory[a].raw, memory[a].slice = shared.raw, shared.slice
            memory[a].shape, memory[a].dtype = known(a.shape), a.dtype.numpy
        else:
            memory[a] = make(np.full(known(a.shape), 77, np.uint8).astype(a.dtype.numpy), skew)


def _calls(chunks: int, seed: int | None) -> list[tuple[int, int, int]]:
    if seed is None:
        return [(0, chunks, 0)] if chunks else []
    rng = random.Random(seed)
    cuts = sorted({0, chunks, *(rng.randrange(chunks + 1) for _ in range(4))})
    if seed % 2:
        cuts = list(range(chunks + 1))
    calls = [(a, b, rng.randrange(THREADS)) for a, b in itertools.pairwise(cuts)]
    rng.shuffle(calls)
    return calls


def references(group: Group, inputs: Mapping[Value, Array]) -> dict[Value, Array]:
    """What NumPy says about every value of a group."""
    values: dict[Value, Array] = dict(inputs)
    for node in group.all_nodes:
        if node.op == "constant":
            values[node.outputs[0]] = node.attrs["value"].array
            continue
        results = op_of(node).reference(*[values[v] for v in node.data_inputs], **node.attrs)
        if not isinstance(results, list | tuple):
            results = (results,)
        for out, array in zip(node.outputs, results, strict=True):
            values[out] = np.asarray(array)
    return values


def group_of(graph: Graph, outputs: Sequence[Value]) -> Group:
    """Everything in a graph but placeholders, as one group."""
    nodes = [n for n in graph.nodes if n.op not in ("placeholder", "constant")]
    scalars = [n for n in graph.nodes if n.op == "constant" and n.attrs["value"].array.size == 1]
    inputs = [v for n in graph.nodes if n not in nodes and n not in scalars for v in n.outputs]
    order = [n for n in graph.nodes if n in nodes or n in scalars]
    return Group(tuple(order), tuple(inputs), tuple(outputs))


def check_group(
    group: Group,
    launches: Sequence[Launch],
    inputs: Mapping[Value, Array],
    target: Target,
    rtol: float = 2e-6,
    atol: float = 1e-6,
) -> None:
    """Kernels equal the references, and equal themselves however chunks are split."""
    expected = references(group, inputs)
    found = execute(launches, inputs, target)
    for value in group.outputs:
        shape = known(value.shape)
        assert as_dtype(expected[value].dtype) is value.dtype
        if 0 in shape:
            continue
        assert_close(found[value], expected[value], rtol, atol, value.name)
    for seed in (1, 2):  # every chunk by itself, a few runs of chunks
        again = execute(launches, inputs, target, seed, skew=4 * seed)
        for value in found:
            assert found[value].tobytes() == again[value].tobytes(), f"{value.name}: split"
    shared = execute(launches, inputs, target, 0, inplace=True)
    for value in found:
        if not any(isinstance(a, Scratch) for launch in launches for a in launch.args):
            assert found[value].tobytes() == shared[value].tobytes(), f"{value.name}: in place"


def assert_close(found: Array, expected: Array, rtol: float, atol: float, name: str = "") -> None:
    """Equal up to the tolerance; NaN equals NaN."""
    if expected.dtype.kind in "biu":
        np.testing.assert_array_equal(found, expected, err_msg=name)
        return
    if expected.dtype.itemsize == 2:
        rtol, atol = max(rtol, 1e-3 if expected.dtype == np.float16 else 8e-3), max(atol, 1e-3)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(
            found.astype(np.float64), expected.astype(np.float64), rtol, atol, err_msg=name
        )


def node_of(value: Value) -> Node:
    """The node that makes a value."""
    return value.node
