"""float16 conversions in software equal those of the hardware and NumPy, for every number."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from families import machine
from harness import function

from weft.codegen.builder import kernel_builder

MACHINES = ("native", "x86-64-v2")


def convert(x: np.ndarray, source: str, target: str, name: str) -> np.ndarray:
    """x in the other format."""
    f = kernel_builder()
    a, b = f.argument(0), f.argument(1)
    opcode = "fpext" if target == "float" else "fptrunc"
    with f.loop(f.params[1], f.params[2], 4) as loop:
        value = f.load(f"<4 x {source}>", f.offset(a, loop.index, source), 2)
        wide = f.emit(f"<4 x {target}>", f"{opcode} {value} to <4 x {target}>")
        f.store(wide, f.offset(b, loop.index, target), 2)
    y = np.empty(x.shape, np.float32 if target == "float" else np.float16)
    slots = (ctypes.c_void_p * 2)(x.ctypes.data, y.ctypes.data)
    function(f.module(), machine(name))(ctypes.addressof(slots), 0, x.size, 0)
    return y


@pytest.mark.parametrize("name", MACHINES)
def test_every_half_widens(name: str) -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    np.testing.assert_array_equal(convert(x, "half", "float", name), x.astype(np.float32))


@np.errstate(all="ignore")
@pytest.mark.parametrize("name", MACHINES)
def test_floats_round_to_nearest_even(name: str) -> None:
    halves = np.arange(1 << 15, dtype=np.uint16).view(np.float16).astype(np.float32)
    ties = (halves[:-1] + halves[1:]) / 2  # the last ones are infinite or not numbers
    x = np.concatenate([halves, ties[:31744], np.float32([65519.996, 65520, 1e30, 1e-30, np.inf])])
    x = np.concatenate([x, np.nextafter(x, np.float32(0)), np.nextafter(x, np.float32(np.inf))])
    x = np.concatenate([x, -x])
    x = x[: x.size // 4 * 4]
    expected = x.astype(np.float16)
    y = convert(x, "float", "half", name)
    np.testing.assert_array_equal(y, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(y[numbers]), np.signbit(expected[numbers]))


def test_the_test_can_fail() -> None:
    x = np.float32([1.0009765625 * 1.5, 1, 1, 1])
    with pytest.raises(AssertionError):
        np.testing.assert_array_equal(convert(x, "float", "half", "native"), x)
