"""Hashes of texts as TensorFlow computes them: FarmHash, MurmurHash64A, SipHash-2-4.

Texts of one length are hashed together, a column of words at a time: 64-bit arithmetic of NumPy
wraps, as C's does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

Words = np.ndarray[Any, np.dtype[np.uint64]]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]


def _u64(value: int) -> np.uint64:
    return np.uint64(value & 0xFFFFFFFFFFFFFFFF)


def _grouped(texts: Sequence[bytes], hash_rows: Callable[[Bytes], Words]) -> Words:
    """The hash of each text; `hash_rows` takes those of one length as the rows of an array."""
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    found = np.empty(len(texts), np.uint64)
    for length in np.unique(lengths):
        places = np.flatnonzero(lengths == length)
        joined = b"".join([texts[int(i)] for i in places])
        rows = np.frombuffer(joined, np.uint8).reshape(len(places), int(length))
        with np.errstate(over="ignore"):
            found[places] = hash_rows(rows)
    return found


def _word(rows: Bytes, at: int) -> Words:
    """The 64 bits of each row from a byte on, little-endian."""
    return np.ascontiguousarray(rows[:, at : at + 8]).view("<u8")[:, 0].astype(np.uint64)


def _half(rows: Bytes, at: int) -> Words:
    return np.ascontiguousarray(rows[:, at : at + 4]).view("<u4")[:, 0].astype(np.uint64)


def _rotated(x: Words, right: int) -> Words:
    return (x >> np.uint64(right)) | (x << np.uint64(64 - right))


def _shift_mix(x: Words, by: int = 47) -> Words:
    return x ^ (x >> np.uint64(by))


# FarmHash's Fingerprint64 (farmhashna, github.com/google/farmhash)
_K0: Final = _u64(0xC3A5C85C97CB3127)
_K1: Final = _u64(0xB492B66FBE98F273)
_K2: Final = _u64(0x9AE16A3B2F90404F)
_SEED: Final = 81


def fingerprints(texts: Sequence[bytes]) -> Words:
    """FarmHash's 64-bit fingerprint of each text."""
    return _grouped(texts, _fingerprint)


def _fingerprint(rows: Bytes) -> Words:
    length = rows.shape[1]
    if length <= 16:
        return _up_to_16(rows, length)
    if length <= 32:
        return _up_to_32(rows, length)
    return _up_to_64(rows, length) if length <= 64 else _long(rows, length)


def _pair(u: Words, v: Words, factor: Any) -> Words:
    a = _shift_mix((u ^ v) * factor)
    return _shift_mix((v ^ a) * factor) * factor


def _up_to_16(rows: Bytes, length: int) -> Words:
    factor = _K2 + _u64(2 * length)
    if length >= 8:
        a, b = _word(rows, 0) + _K2, _word(rows, length - 8)
        c, d = _rotated(b, 37) * factor + a, (_rotated(a, 25) + b) * factor
        return _pair(c, d, factor)
    if length >= 4:
        a = (_half(rows, 0) << np.uint64(3)) + _u64(length)
        return _pair(a, _half(rows, length - 4), factor)
    if length > 0:
        a, b, c = (rows[:, i].astype(np.uint64) for i in (0, length >> 1, length - 1))
        y, z = a + (b << np.uint64(8)), (c << np.uint64(2)) + _u64(length)
        return _shift_mix(y * _K2 ^ z * _K0) * _K2
    return np.full(len(rows), _K2)


def _up_to_32(rows: Bytes, length: int) -> Words:
    factor = _K2 + _u64(2 * length)
    a, b = _word(rows, 0) * _K1, _word(rows, 8)
    c, d = _word(rows, length - 8) * factor, _word(rows, length - 16) * _K2
    first = _rotated(a + b, 43) + _rotated(c, 30) + d
    return _pair(first, a + _rotated(b + _K2, 18) + c, factor)


def _up_to_64(rows: Bytes, length: int) -> Words:
    factor = _K2 + _u64(2 * length)
    a, b = _word(rows, 0) * _K2, _word(rows, 8)
    c, d = _word(rows, length - 8) * factor, _word(rows, length - 16) * _K2
    y = _rotated(a + b, 43) + _rotated(c, 30) + d
    z = _pair(y, a + _rotated(b + _K2, 18) + c, factor)
    e, f = _word(rows, 16) * factor, _word(rows, 24)
    g = (y + _word(rows, length - 32)) * factor
    h = (z + _word(rows, length - 24)) * factor
    first = _rotated(e + f, 43) + _rotated(g, 30) + h
    return _pair(first, e + _rotated(f + a, 18) + g, factor)


def _weak(rows: Bytes, at: int, a: Words, b: Words) -> tuple[Words, Words]:
    """32 bytes mixed into two words."""
    w, x, y, z = (_word(rows, at + 8 * i) for i in range(4))
    a = a + w
    b = _rotated(b + a + z, 21)
    sum_ = a + x + y
    return sum_ + z, b + _rotated(sum_, 44) + a


def _long(rows: Bytes, length: int) -> Words:
    zero = np.zeros(len(rows), np.uint64)
    seed = _u64(_SEED)
    y = zero + (seed * _K1 + _u64(113))
    z = _shift_mix(y * _K2 + _u64(113)) * _K2
    v, w = (zero, zero), (zero, zero)
    x = (zero + seed) * _K2 + _word(rows, 0)
    for at in range(0, (length - 1) // 64 * 64, 64):
        x, y, z, v, w = _block(rows, at, (x, y, z, v, w), _K1, 1)
    factor = _K1 + ((z & _u64(0xFF)) << np.uint64(1))
    w = (w[0] + _u64((length - 1) & 63), w[1])
    v = (v[0] + w[0], v[1])
    w = (w[0] + v[0], w[1])
    x, y, z, v, w = _block(rows, length - 64, (x, y, z, v, w), factor, 9)
    first = _pair(v[0], w[0], factor) + _shift_mix(y) * _K0 + z
    return _pair(first, _pair(v[1], w[1], factor) + x, factor)


def _block(rows: Bytes, at: int, state: Any, factor: Any, weight: int) -> Any:
    """64 bytes mixed into the state; in the last block, two words count nine times."""
    x, y, z, v, w = state
    times = _u64(weight)
    x = _rotated(x + y + v[0] + _word(rows, at + 8), 37) * factor
    y = _rotated(y + v[1] + _word(rows, at + 48), 42) * factor
    x = x ^ (w[1] * times)
    y = y + v[0] * times + _word(rows, at + 40)
    z = _rotated(z + w[0], 33) * factor
    v = _weak(rows, at, v[1] * factor, x + w[0])
    w = _weak(rows, at + 32, z + w[1], y + _word(rows, at + 16))
    return z, y, x, v, w


# MurmurHash64A (Austin Appleby), with TensorFlow's seed
_M: Final = _u64(0xC6A4A7935BD1E995)
_MURMUR_SEED: Final = _u64(0xDECAFCAFFE)


def murmur_hashes(texts: Sequence[bytes]) -> Words:
    """TensorFlow's `Hash64` of each text."""
    return _grouped(texts, _murmur)


def _murmur(rows: Bytes) -> Words:
    count, length = rows.shape
    h = np.full(count, _MURMUR_SEED ^ (_u64(length) * _M))
    for at in range(0, length - 7, 8):
        h = (h ^ (_shift_mix(_word(rows, at) * _M) * _M)) * _M
    rest = length % 8
    if rest:
        h = (h ^ _tail(rows, length - rest)) * _M
    return _shift_mix(_shift_mix(h) * _M)


def _tail(rows: Bytes, at: int) -> Words:
    """The last bytes, fewer than 8, as a word."""
    padded = np.zeros((len(rows), 8), np.uint8)
    padded[:, : rows.shape[1] - at] = rows[:, at:]
    return _word(padded, 0)


# SipHash-2-4 (Aumasson and Bernstein)
_SIP: Final = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)


def sip_hashes(texts: Sequence[bytes], key: tuple[int, int]) -> Words:
    """SipHash-2-4 of each text."""
    return _grouped(texts, lambda rows: _sip(rows, key))


def _sip(rows: Bytes, key: tuple[int, int]) -> Words:
    count, length = rows.shape
    v = [np.full(count, _u64(word ^ key[i % 2])) for i, word in enumerate(_SIP)]
    whole = length // 8 * 8
    words = [_word(rows, at) for at in range(0, whole, 8)]
    words.append(_tail(rows, whole) | (_u64(length & 0xFF) << np.uint64(56)))
    for word in words:
        v[3] = v[3] ^ word
        v = _rounds(v, 2)
        v[0] = v[0] ^ word
    v[2] = v[2] ^ _u64(0xFF)
    v = _rounds(v, 4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def _rounds(v: list[Words], count: int) -> list[Words]:
    a, b, c, d = v
    for _ in range(count):
        a = a + b
        b = _rotated(b, 51) ^ a
        a = _rotated(a, 32)
        c = c + d
        d = _rotated(d, 48) ^ c
        a = a + d
        d = _rotated(d, 43) ^ a
        c = c + b
        b = _rotated(b, 47) ^ c
        c = _rotated(c, 32)
    return [a, b, c, d]
