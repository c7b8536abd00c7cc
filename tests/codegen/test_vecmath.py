"""Vector math against NumPy in the next larger type: accuracy, special values, every width."""

from __future__ import annotations

import ctypes
import functools
import math
import struct
import sys

import numpy as np
import pytest
from harness import object_code

from weft import config
from weft.codegen import llvm, target, vecmath
from weft.codegen.builder import kernel_builder, vector

TARGETS = ("native", "x86-64-v3", "x86-64-v2")
APART = TARGETS[::2]  # with fma they agree
TYPES = {"float": np.float32, "double": np.float64}
CALL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
LIBRARY = llvm.Library()

exact_erf = np.vectorize(math.erf, otypes=[np.float64])
UNARY = {
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "erf": exact_erf, "sin": np.sin, "cos": np.cos,
    "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh,
    "cosh": np.cosh, "rsqrt": lambda x: 1 / np.sqrt(x), "sqrt": np.sqrt, "floor": np.floor,
    "ceil": np.ceil, "round": np.rint, "trunc": np.trunc, "abs": np.abs,
}  # fmt: skip
BINARY = {"power": np.power, "atan2": np.arctan2}
EXACT = {"fmod": np.fmod, "remainder": np.remainder, "floor_divide": np.floor_divide}
LIMIT = {"float": 2.0, "double": 3.5}  # units in the last place


def emitted(name: str, type_: str, lanes: int, inputs: int) -> str:
    """A kernel that applies one function to arrays of a multiple of `lanes` numbers."""
    f = kernel_builder()
    pointers = [f.argument(i) for i in range(inputs + 1)]
    wide = vector(type_, lanes)
    with f.loop(f.params[1], f.params[2], lanes) as loop:
        xs = [f.load(wide, f.offset(p, loop.index, type_)) for p in pointers[:-1]]
        y = getattr(vecmath, name)(f, *xs)
        f.store(y, f.offset(pointers[-1], loop.index, type_))
    return f.module()


@functools.cache
def compiled(name: str, type_: str, lanes: int, machine: str, inputs: int = 1):
    """The function on arrays."""
    with config.override(target=machine):
        goal = target.current()
    code = object_code(emitted(name, type_, lanes, inputs), goal)
    function = CALL(LIBRARY.link({"weft_kernel": code})["weft_kernel"])

    def call(*xs: np.ndarray) -> np.ndarray:
        size = xs[0].size
        padded = [np.resize(x, -(-size // lanes) * lanes) for x in xs]
        y = np.empty_like(padded[0])
        function((ctypes.c_void_p * 3)(*(a.ctypes.data for a in (*padded, y))), 0, y.size, 0)
        return y[:size]

    return call


@np.errstate(all="ignore")
def hard(dtype) -> np.ndarray:
    """Zeros, subnormals, the ends of every range, numbers next to powers of two and n pi/2."""
    info = np.finfo(dtype)
    powers = dtype(2.0) ** np.arange(info.minexp - info.nmant, info.maxexp, dtype=dtype)
    turns = (np.arange(1, 2000) * (np.pi / 2)).astype(dtype)
    large_turns = (turns.astype(np.float64) * 1e6).astype(dtype)
    ends = [0, 0.5, 0.625, 1, 2, 17.3, 18, 88.7, 88.73, 89.4, 103.9, 104.1, 709.7, 709.79, 710.5]
    ends += [744.4, 745.2, 746, 6, np.inf, np.nan, info.max, info.tiny, info.smallest_subnormal]
    x = np.concatenate([powers, turns, large_turns, np.asarray(ends, dtype)])
    x = np.concatenate([x, np.nextafter(x, dtype(np.inf)), np.nextafter(x, dtype(0))])
    return np.concatenate([x, -x])


@np.errstate(all="ignore")
def sample(dtype, size: int, seed: int = 0) -> np.ndarray:
    """Random bit patterns, and numbers where functions are interesting, and the hard cases."""
    rng = np.random.default_rng(seed)
    whole = np.uint32 if dtype == np.float32 else np.uint64
    parts = [rng.integers(0, np.iinfo(whole).max, size, whole).view(dtype)]
    parts += [rng.uniform(-w, w, size // 2).astype(dtype) for w in (1, 2, 10, 100, 1000)]
    return np.concatenate([*parts, hard(dtype)])


def errors(y: np.ndarray, exact: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distances in units in the last place, and where special results differ."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(y.dtype)
        unit = np.spacing(np.maximum(np.abs(rounded), np.finfo(y.dtype).tiny))
        finite = np.isfinite(rounded) & np.isfinite(y)
        distance = np.abs(y.astype(exact.dtype) - exact) / unit.astype(exact.dtype)
    same = np.where(finite, distance < 1e3, (y == rounded) | (np.isnan(y) & np.isnan(rounded)))
    same &= np.isnan(y) | (np.signbit(y) == np.signbit(rounded))
    return np.where(finite, distance, 0), ~same


def check(name: str, type_: str, machine: str, reference, *xs: np.ndarray) -> float:
    """Compare one function on one target; the largest error."""
    wider = np.float64 if type_ == "float" or name == "erf" else np.longdouble
    with np.errstate(all="ignore"):
        exact = reference(*(x.astype(wider) for x in xs))
    y = compiled(name, type_, 16 if type_ == "float" else 8, machine, len(xs))(*xs)
    distance, wrong = errors(y, exact)
    where = [tuple(x[wrong][:3]) for x in xs]
    assert not wrong.any(), f"{name}{where} gave {y[wrong][:3]}, expected {exact[wrong][:3]}"
    worst = int(distance.argmax())
    at = tuple(x[worst] for x in xs)
    assert distance[worst] <= LIMIT[type_], f"{name}{at} is {distance[worst]:.2f} ulp off"
    return float(distance[worst])


@pytest.mark.parametrize("machine", APART)
@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("name", UNARY)
def test_one_argument(name: str, type_: str, machine: str) -> None:
    size = 30_000 if name == "erf" or type_ == "double" else 80_000
    check(name, type_, machine, UNARY[name], sample(TYPES[type_], size))


@np.errstate(all="ignore")
@pytest.mark.parametrize("machine", APART)
@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("name", BINARY)
def test_two_arguments(name: str, type_: str, machine: str) -> None:
    dtype = TYPES[type_]
    rng = np.random.default_rng(1)
    few = np.array(
        [0, 0.5, 1, 1.5, 2, 3, 7, 2.5, 1e-30, 1e-40, 1e30, 16777216, 16777217, np.inf, np.nan],
        dtype,
    )
    few = np.concatenate([few, -few])
    x, y = (a.ravel() for a in np.meshgrid(few, few))
    for spread, size in ((3, 20_000), (40, 20_000)):
        x = np.concatenate([x, np.exp(rng.normal(0, spread / 3, size)).astype(dtype)])
        y = np.concatenate([y, (rng.normal(0, 60 / spread, size)).astype(dtype)])
    near_one = 1 + rng.uniform(-1e-3, 1e-3, 20_000)
    x = np.concatenate([x, near_one.astype(dtype)])
    y = np.concatenate([y, rng.uniform(-9e4, 9e4, 20_000).astype(dtype)])
    check(name, type_, machine, BINARY[name], x, y)


@np.errstate(all="ignore")
@pytest.mark.parametrize("machine", APART)
@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("name", EXACT)
def test_division_is_exact(name: str, type_: str, machine: str) -> None:
    dtype = TYPES[type_]
    few = np.array([0, 0.3, 0.5, 1, 2, 3, 7, 1e-40, 1e-30, 1e30, 3.4e38, np.inf, np.nan], dtype)
    if dtype is np.float64:
        few = np.concatenate([few, [5e-324, 2e-308, 1e-300, 1.7e308]])
    few = np.concatenate([few, -few])
    rng = np.random.default_rng(3)
    whole = rng.integers(-50, 50, (2, 5000)).astype(dtype)
    spread = rng.normal(size=(2, 20_000)) * 2.0 ** rng.integers(-30, 30, (2, 20_000))
    wild = sample(dtype, 10_000)[:20_000]
    parts = [np.array(np.meshgrid(few, few)).reshape(2, -1), whole, spread, [wild, wild[::-1]]]
    x, y = np.concatenate(parts, axis=1).astype(dtype)
    expected = EXACT[name](x, y)
    got = compiled(name, type_, 8, machine, 2)(x, y)
    same = (got == expected) & (np.signbit(got) == np.signbit(expected))
    wrong = ~(same | (np.isnan(got) & np.isnan(expected)))
    assert not wrong.any(), (x[wrong][:3], y[wrong][:3], got[wrong][:3], expected[wrong][:3])


@pytest.mark.parametrize("machine", APART)
@pytest.mark.parametrize("type_", TYPES)
def test_width_and_position_do_not_matter(type_: str, machine: str) -> None:
    dtype = TYPES[type_]
    x = sample(dtype, 1000, seed=2)[:4001]
    for number, name in enumerate((*UNARY, *BINARY, *EXACT)):
        xs = (x,) if name in UNARY else (np.abs(x), x[::-1].copy())
        expected = compiled(name, type_, 1, machine, len(xs))(*xs)
        for lanes in ((2, 8)[number % 2], 32):
            y = compiled(name, type_, lanes, machine, len(xs))(*xs)
            np.testing.assert_array_equal(y, expected, f"{name} on {lanes} lanes")
            shifted = compiled(name, type_, lanes, machine, len(xs))(*(a[3:] for a in xs))
            np.testing.assert_array_equal(shifted, expected[3:], f"{name} shifted")


@pytest.mark.parametrize("type_", TYPES)
def test_machines_with_fma_agree(type_: str) -> None:
    x = sample(TYPES[type_], 1000, seed=4)[:4000]
    for name in (*UNARY, *BINARY, *EXACT):
        xs = (x,) if name in UNARY else (np.abs(x), x[::-1].copy())
        a, b = (compiled(name, type_, 32, machine, len(xs))(*xs) for machine in TARGETS[:2])
        np.testing.assert_array_equal(a, b, name)


def undefined(code: bytes) -> set[str]:
    """Names of the symbols that an ELF object needs from elsewhere."""
    table, count = struct.unpack_from("<Q", code, 40)[0], struct.unpack_from("<H", code, 60)[0]
    sections = [struct.unpack_from("<IIQQQQIIQQ", code, table + 64 * i) for i in range(count)]
    names: set[str] = set()
    for _, kind, _, _, start, size, link, _, _, _ in sections:
        if kind != 2:  # SHT_SYMTAB
            continue
        strings = sections[link][4]
        for at in range(start + 24, start + size, 24):
            name, _, _, section = struct.unpack_from("<IBBH", code, at)
            if section == 0:
                end = code.index(b"\0", strings + name)
                names.add(code[strings + name : end].decode())
    return names


@pytest.mark.skipif(sys.platform != "linux", reason="reads ELF objects")
@pytest.mark.parametrize("machine", TARGETS)
def test_no_library_is_called(machine: str) -> None:
    with config.override(target=machine):
        goal = target.current()
    for name in (*UNARY, *BINARY, *EXACT):
        for type_, lanes in (("float", 1), ("float", 16), ("double", 8)):
            inputs = 1 if name in UNARY else 2
            code = object_code(emitted(name, type_, lanes, inputs), goal)
            assert undefined(code) <= {"_GLOBAL_OFFSET_TABLE_"}, name


def test_the_test_can_fail() -> None:
    x = sample(np.float32, 1000)
    with pytest.raises(AssertionError, match="ulp off"):
        check("exp", "float", "native", lambda v: np.exp(v) * (1 + 3e-7), x)
    with pytest.raises(AssertionError, match="gave"):
        check("tanh", "float", "native", lambda v: np.where(v == 0, 1e-30, np.tanh(v)), x)
    code = llvm.to_object(
        "declare float @sinf(float)\ndefine float @f(float %x) {\n"
        "  %y = call float @sinf(float %x)\n  ret float %y\n}\n", "x86-64", ""
    )  # fmt: skip
    assert undefined(code) == {"sinf"}
