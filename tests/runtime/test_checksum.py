"""Native checksum kernels against zlib and the definition, for each vector width."""

import zlib

import numpy as np
import pytest

from weft.codegen import checksum, llvm
from weft.codegen.checksum import constants, power, table
from weft.codegen.target import current
from weft.formats.crc32c import POLYNOMIAL, crc32c
from weft.runtime import checksum as native

CRC32 = 0xEDB88320
SIZES = [*range(70), 255, 256, 257, 271, 272, 511, 1024, 4099, 70_001]


def by_bytes(polynomial, data, state):
    looked = table(polynomial)
    for byte in data:
        state = looked[(state ^ byte) & 255] ^ state >> 8
    return state


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("polynomial", [CRC32, POLYNOMIAL])
def test_the_kernel_agrees_with_a_table(polynomial, wide, monkeypatch):
    name, has = llvm.host()
    if not has.get("pclmul"):
        assert native.crc_update(polynomial) is None
        return
    if not wide:  # as on a processor without the wide instruction
        current()  # what is compiled for stays this machine
        monkeypatch.setattr(llvm, "host", lambda: (name, {**has, "vpclmulqdq": False}))
    monkeypatch.setattr(native, "_found", {})
    update = native.crc_update(polynomial)
    rng = np.random.default_rng(0)
    for size in SIZES:
        data, state = rng.bytes(size + 1), int(rng.integers(1 << 32))
        assert update(memoryview(data)[1:], state) == by_bytes(polynomial, data[1:], state)
    data = rng.bytes(5000)
    assert update(data, 0xFFFFFFFF) ^ 0xFFFFFFFF in (zlib.crc32(data), crc32c(data))


def test_a_wrong_constant_is_noticed(monkeypatch):
    if native.crc_update(CRC32) is None:
        return
    low, high = constants(CRC32, 16)
    monkeypatch.setattr(checksum, "constants", lambda polynomial, distance: (low, high ^ 1 << 40))
    monkeypatch.setattr(native, "_found", {})
    data = bytes(range(64))
    assert native.crc_update(CRC32)(data, 0) != by_bytes(CRC32, data, 0)


def test_powers_multiply_what_stands_earlier():
    """x^n is what a one becomes by n bits of zeros."""
    assert power(CRC32, 0) == 1 << 31
    assert power(CRC32, 32) == CRC32
    assert by_bytes(CRC32, bytes(8), power(CRC32, 5)) == power(CRC32, 69)


def test_nothing_is_compiled_for_little(monkeypatch):
    monkeypatch.setattr(native, "_found", {})
    assert native.crc_update(CRC32, worthwhile=False) is None
    assert native._found == {}
