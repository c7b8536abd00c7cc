"""CRC-32C against its definition, and the identities that its fast form uses."""

import functools

import numpy as np
import pytest

from weft.formats import crc32c as module
from weft.formats.crc32c import FOLD, POLYNOMIAL, ROW, ROWS, crc32c, masked, unmasked


@functools.cache
def by_bits(data: bytes, state: int = 0) -> int:
    """The definition: one bit after the other."""
    state ^= 0xFFFFFFFF
    for byte in data:
        state ^= byte
        for _ in range(8):
            state = state >> 1 ^ (POLYNOMIAL if state & 1 else 0)
    return state ^ 0xFFFFFFFF


def power(exponent: int) -> int:
    """x^exponent modulo the polynomial, reflected."""
    state = 0x80000000
    for _ in range(exponent):
        state = state >> 1 ^ (POLYNOMIAL if state & 1 else 0)
    return state


def test_the_vectors_of_the_standard():
    assert crc32c(b"") == 0
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA
    assert crc32c(b"\xff" * 32) == 0x62A8AB43
    assert crc32c(bytes(range(32))) == 0x46DD794E
    assert unmasked(masked(0xE3069283)) == 0xE3069283


def test_the_polynomial_that_long_messages_are_folded_by():
    degree = FOLD[-1]
    total = power(64 * degree) ^ power(0)
    for distance in FOLD[:-1]:
        total ^= power(64 * (degree - distance))
    assert total == 0


LONG = 8 * FOLD[-1]
SIZES = [1, 4, 31, 33, 36, ROW - 1, ROW, ROW + 1, 5000, LONG - 1, LONG + 8, LONG + 15]


@pytest.mark.parametrize("size", [*SIZES, ROWS * ROW + 1, LONG + 8 * FOLD[0] + 3, 200_003])
@pytest.mark.parametrize("native", [False, True])
def test_every_length_agrees_with_the_definition(size, native, monkeypatch):
    if not native:
        monkeypatch.setattr(module, "crc_update", lambda polynomial, worthwhile: None)
    data = np.random.default_rng(size).bytes(size)
    assert crc32c(data) == by_bits(data)
    assert crc32c(memoryview(data)[size // 3 :], crc32c(data[: size // 3])) == crc32c(data)
