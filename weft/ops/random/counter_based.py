"""Counter-based random numbers: each depends on the seed, the counter and its position alone.

`random_bits` is Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", 2011).
Distributions are functions of its bits. `counter` counts the steps (see `ops.counter`), and `seed`
is a pair of 32-bit numbers. The same seed, counter and shape give the same numbers on every machine
and with any number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from weft.errors import DTypeError, ShapeError
from weft.ir.dtype import DType, as_dtype, float32, float64, int32, int64, uint32, uint64
from weft.ir.node import Value
from weft.ops.declaration import NO_GRADIENT, Array, Case, Pull, catalogue, constant_of, defop
from weft.ops.declaration.attribute import REQUIRED
from weft.ops.declaration.fact import Cost, Facts
from weft.ops.declaration.rule import attribute_shape, whole_shape
from weft.ops.special.error_function import erfinv

__all__ = [
    "bernoulli", "categorical", "random_integers", "random_normal", "random_permutation",
    "random_uniform", "truncated_normal",
]  # fmt: skip

# Multipliers and key increments of Philox4x32, from the paper.
MULTIPLIERS: Final = (0xD2511F53, 0xCD9E8D57)
INCREMENTS: Final = (0x9E3779B9, 0xBB67AE85)
ROUNDS: Final = 10
LANES: Final = 16  # adjacent blocks: one vector of 16 makes 64 numbers from one Philox call
WORDS: Final = 4  # numbers in a block
MASK: Final = 0xFFFFFFFF
SEED: Final = (0, 0)  # the key if only the counter differs between draws


def philox(words: tuple[Array, ...], key: tuple[int, int]) -> tuple[Array, ...]:
    """Ten rounds of Philox on four uint32 words, given as uint64 arrays below 2**32."""
    c0, c1, c2, c3 = words
    k0, k1 = key
    low, high = np.uint64(MASK), np.uint64(32)
    for _ in range(ROUNDS):
        p0, p1 = c0 * np.uint64(MULTIPLIERS[0]), c2 * np.uint64(MULTIPLIERS[1])
        c0, c2 = (p1 >> high) ^ c1 ^ np.uint64(k0), (p0 >> high) ^ c3 ^ np.uint64(k1)
        c1, c3 = p1 & low, p0 & low
        k0, k1 = (k0 + INCREMENTS[0]) & MASK, (k1 + INCREMENTS[1]) & MASK
    return c0, c1, c2, c3


def _bits_dtype(counter: DType, **_: Any) -> DType:
    if counter is not uint64:
        raise DTypeError(f"counter: expected uint64, got {counter}")
    return uint32


def _bits_shape(counter: Any, *, seed: Any, shape: Any) -> Any:
    if counter is not None and counter != ():
        raise ShapeError(f"counter: expected a scalar, got shape {counter}")
    if len(seed) != 2 or not all(isinstance(s, int) and 0 <= s <= MASK for s in seed):
        raise ShapeError(f"seed: expected two numbers from 0 to 2**32 - 1, got {seed}")
    return attribute_shape(shape=shape)


def _bits_reference(counter: Array, *, seed: Any, shape: Any) -> Array:
    size = math.prod(shape if isinstance(shape, tuple) else (shape,))
    groups = -(-size // (LANES * WORDS))
    block = np.arange(groups * LANES, dtype=np.uint64)
    low, high = np.uint64(MASK), np.uint64(32)
    step = np.broadcast_to(counter.astype(np.uint64), block.shape)
    words = philox((block & low, block >> high, step & low, step >> high), seed)
    ordered = np.stack(words).reshape(WORDS, groups, LANES).transpose(1, 0, 2)
    return ordered.reshape(-1)[:size].astype(np.uint32).reshape(shape)


def _bits_pull(b: Any, index: Any, counter: Any, *, seed: Any, shape: Any) -> Any:
    dims = shape if isinstance(shape, tuple) else (shape,)
    word: Any = None
    block: Any = 0
    if dims:
        flat = index[0]
        for i, d in zip(index[1:], dims[1:], strict=True):
            flat = flat * d + i
        block = (flat // (LANES * WORDS)) * LANES + flat % LANES
        word = flat % (LANES * WORDS) // LANES
    words = _emit_philox(b, _start(b, block, math.prod(dims), counter(())), seed)
    found = words[0]
    for k in range(1, WORDS):
        if word is not None:
            found = b.select(b.inside(word, k, k + 1), words[k], found)
    return found


def _start(b: Any, block: Any, size: int, step: Any) -> tuple[Any, Any, Any, Any]:
    """The four input words of Philox."""
    low, high = b.const(MASK, uint64), b.const(32, uint64)
    zero = b.const(0, uint32)
    if size == 1:
        halves = (zero, zero)
    elif size <= 1 << 32:
        halves = (b.scalar(block, uint32), zero)
    else:
        wide = b.scalar(block, uint64)
        halves = (b.cast(b.bit_and(wide, low), uint32), b.cast(b.shift_right(wide, high), uint32))
    counted = (b.cast(b.bit_and(step, low), uint32), b.cast(b.shift_right(step, high), uint32))
    return (*halves, *counted)


def _emit_philox(b: Any, words: tuple[Any, Any, Any, Any], key: Any) -> tuple[Any, Any, Any, Any]:
    c0, c1, c2, c3 = words
    k0, k1 = key
    m0, m1 = (b.const(m, uint32) for m in MULTIPLIERS)
    for _ in range(ROUNDS):
        high0, low0, high1, low1 = b.mul_high(c0, m0), c0 * m0, b.mul_high(c2, m1), c2 * m1
        c0 = b.bit_xor(b.bit_xor(high1, c1), b.const(k0, uint32))
        c2 = b.bit_xor(b.bit_xor(high0, c3), b.const(k1, uint32))
        c1, c3 = low1, low0
        k0, k1 = (k0 + INCREMENTS[0]) & MASK, (k1 + INCREMENTS[1]) & MASK
    return c0, c1, c2, c3


def _bits_cases() -> Iterator[Case]:
    for count, seed, shape in (
        (0, (0, 0), (4, 33)),
        (1, (0xDEADBEEF, 7), (130,)),
        ((1 << 40) + 5, (MASK, MASK), (3, 5, 7)),
        (3, (1, 2), ()),
        (3, (1, 2), (0,)),
    ):
        yield Case((np.array(count, np.uint64),), {"seed": seed, "shape": shape})


random_bits = defop(
    "random_bits",
    inputs="counter:uint64",
    attrs={"seed": REQUIRED, "shape": REQUIRED},
    dtype=_bits_dtype,
    shape=_bits_shape,
    reference=_bits_reference,
    vjp=NO_GRADIENT,
    normal=whole_shape,
    lower=Pull(_bits_pull),
    cases=_bits_cases,
    partial=True,
    facts=Facts(cost=Cost.EXPENSIVE),
)
"""Uniform uint32 numbers. Element i of the flattened array, with q, w, l = i // 64, i % 64 // 16,
i % 16, is word w of the block 16 * q + l; the block's counter is (block, step), each in two words.
"""

# Distributions


def _more(shape: Any, count: int) -> Any:
    """The shape with a leading dimension of `count`."""
    if isinstance(shape, Value):
        return catalogue.concatenate(constant_of([count], shape.dtype), shape, axis=0)
    return (count, shape) if isinstance(shape, int) else (count, *shape)


def _pairs(counter: Value, seed: Any, shape: Any) -> tuple[Value, Value]:
    """Two independent arrays of random bits."""
    bits = random_bits(counter, seed=seed, shape=_more(shape, 2))
    return bits[0], bits[1]


def _unit(counter: Value, seed: Any, shape: Any, dtype: DType) -> Value:
    """Uniform in [0, 1), on the finest even grid that the dtype can represent."""
    if dtype is float64:  # 27 and 26 bits
        high, low = _pairs(counter, seed, shape)
        upper = catalogue.cast(catalogue.right_shift(high, 5), dtype=float64)
        lower = catalogue.cast(catalogue.right_shift(low, 6), dtype=float64)
        return (upper * 2.0**26 + lower) * 2.0**-53
    digits = {"float32": 24, "float16": 11, "bfloat16": 8}.get(dtype.name)
    if digits is None:
        raise DTypeError(f"random_uniform: expected a floating-point dtype, got {dtype}")
    bits = random_bits(counter, seed=seed, shape=shape)
    kept = catalogue.cast(catalogue.right_shift(bits, 32 - digits), dtype=float32)
    return catalogue.cast(kept * 2.0**-digits, dtype=dtype)


def random_uniform(
    counter: Value, seed: Any, shape: Any, dtype: Any = float32, low: Any = 0.0, high: Any = 1.0
) -> Value:
    """Uniform numbers in [low, high), which may be values."""
    x = _unit(counter, seed, shape, as_dtype(dtype))
    if isinstance(low, float | int) and isinstance(high, float | int):
        scaled = x if high - low == 1 else x * (high - low)
        return scaled if low == 0 else scaled + low
    return x * catalogue.subtract(high, low) + low


def _symmetric(counter: Value, seed: Any, shape: Any, dtype: DType) -> Value:
    """Uniform in (-1, 1), never an end, symmetric about 0: odd multiples of 2**-24 (or 2**-53)."""
    if dtype is float64:
        return _unit(counter, seed, shape, dtype) * 2.0 - (1.0 - 2.0**-53)
    bits = catalogue.bitcast(random_bits(counter, seed=seed, shape=shape), dtype=int32)
    kept = catalogue.cast(catalogue.right_shift(bits, 8), dtype=float32)
    return (kept + 0.5) * 2.0**-23


def random_normal(
    counter: Value, seed: Any, shape: Any, dtype: Any = float32, mean: Any = 0.0, std: Any = 1.0
) -> Value:
    """Normal numbers, by the inverse error function, from one random number each."""
    return _normal(counter, seed, shape, as_dtype(dtype), mean, std, 1.0)


def truncated_normal(
    counter: Value, seed: Any, shape: Any, dtype: Any = float32, mean: Any = 0.0, std: Any = 1.0
) -> Value:
    """Normal numbers truncated to two standard deviations around the mean."""
    return _normal(counter, seed, shape, as_dtype(dtype), mean, std, math.erf(math.sqrt(2.0)))


def _normal(
    counter: Value, seed: Any, shape: Any, dtype: DType, mean: Any, std: Any, inside: float
) -> Value:
    if not dtype.is_floating:
        raise DTypeError(f"random_normal: expected a floating-point dtype, got {dtype}")
    computed = float64 if dtype is float64 else float32
    u = _symmetric(counter, seed, shape, computed)
    x = erfinv(u if inside == 1.0 else u * inside) * math.sqrt(2.0)
    x = x if dtype is computed else catalogue.cast(x, dtype=dtype)
    x = x if isinstance(std, float | int) and std == 1 else x * std
    return x if isinstance(mean, float | int) and mean == 0 else x + mean


def random_integers(
    counter: Value, seed: Any, shape: Any, low: Any, high: Any, dtype: Any = int32
) -> Value:
    """Integers in [low, high), uniform up to (high - low) / 2**32 in probability.

    Ranges over 2**32 are drawn from 64 bits. Bounds are numbers, or integer values that broadcast
    with the shape, the low one less than the high one.
    """
    kind = as_dtype(dtype)
    if isinstance(low, Value) or isinstance(high, Value):
        return _integers_between(counter, seed, shape, low, high, kind)
    span = high - low
    if span <= 0:
        raise ShapeError(f"random_integers: expected low < high, got {low} and {high}")
    if not kind.is_integer:
        raise DTypeError(f"random_integers: expected an integer dtype, got {kind}")
    if span <= 1 << 32:
        bits = catalogue.cast(random_bits(counter, seed=seed, shape=shape), dtype=uint64)
        drawn = catalogue.right_shift(bits * span, 32)
    else:
        upper, lower = (catalogue.cast(x, dtype=uint64) for x in _pairs(counter, seed, shape))
        drawn = catalogue.bitwise_or(catalogue.left_shift(upper, 32), lower)
        drawn = drawn % span if span < 1 << 64 else drawn
    # Modulo 2**64, which is correct for a negative `low` and spans beyond int64.
    return catalogue.cast(drawn + low % (1 << 64), dtype=kind)


def _integers_between(
    counter: Value, seed: Any, shape: Any, low: Any, high: Any, kind: DType
) -> Value:
    """The same numbers for bounds that are values; 64 bits where the type has as many."""
    least, span = (_modulo(x) for x in (low, high))
    span = span - least
    if kind.size <= 4:
        bits = catalogue.cast(random_bits(counter, seed=seed, shape=shape), dtype=uint64)
        drawn = catalogue.right_shift(bits * span, 32)
    else:
        upper, lower = (catalogue.cast(x, dtype=uint64) for x in _pairs(counter, seed, shape))
        drawn = catalogue.bitwise_or(catalogue.left_shift(upper, 32), lower) % span
    return catalogue.cast(drawn + least, dtype=kind)


def _modulo(x: Any) -> Any:
    """An integer modulo 2**64."""
    if not isinstance(x, Value):
        return catalogue.constant(x % (1 << 64), uint64)
    return catalogue.cast(catalogue.cast(x, dtype=int64), dtype=uint64)


def bernoulli(counter: Value, seed: Any, shape: Any, p: Any) -> Value:
    """Booleans that are true with probability `p`, a number or a float32 value; a dropout mask."""
    return catalogue.less(_unit(counter, seed, shape, float32), p)


def random_permutation(counter: Value, seed: Any, size: Any) -> Value:
    """The numbers 0 to size - 1 in random order, int32."""
    return catalogue.sort.all(random_bits(counter, seed=seed, shape=[size]))[1]


def categorical(counter: Value, seed: Any, logits: Value, count: int) -> Value:
    """Draw `count` classes for each row of logits (rows, classes), by the Gumbel-max trick.

    Returns:
        int64, shape (rows, count).
    """
    rows = catalogue.expand_dims(logits, axis=1)
    dims = logits.shape
    if dims is None or len(dims) != 2:
        raise ShapeError(f"categorical: expected logits of rank 2, got {logits!r}")
    known = [catalogue.shape_of(logits)[i] if d is None else d for i, d in enumerate(dims)]
    u = _symmetric(counter, seed, [known[0], count, known[1]], float32) * 0.5 + 0.5
    gumbel = catalogue.cast(
        catalogue.negative(catalogue.log(-catalogue.log(u))), dtype=logits.dtype
    )
    return catalogue.argmax(rows + gumbel, axis=2)
