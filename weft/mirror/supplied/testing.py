"""`torch.testing`: values that have to be close."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from weft.eager.functions.creation.constructor import as_tensor
from weft.eager.functions.elementwise.binary import isclose
from weft.eager.tensor.handle import Handle

__all__ = ["assert_allclose", "assert_close"]

_CLOSE: Final = {
    "float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7), "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7),
}  # fmt: skip
"""By dtype: relative and absolute tolerances; PyTorch 2.13's."""


def assert_close(
    actual: Any, expected: Any, *, rtol: float | None = None, atol: float | None = None,
    equal_nan: bool = False, check_dtype: bool = True, msg: Any = None,
) -> None:  # fmt: skip
    """Compare tensors or numbers, also in lists and dicts.

    Raises:
        AssertionError: they differ in values, shape, dtype or structure.
    """
    if isinstance(expected, Mapping | list | tuple):
        assert type(actual) is type(expected) and len(actual) == len(expected), msg
        keys = expected if isinstance(expected, Mapping) else range(len(expected))
        for key in keys:
            assert_close(
                actual[key], expected[key], rtol=rtol, atol=atol, equal_nan=equal_nan,
                check_dtype=check_dtype, msg=msg,
            )  # fmt: skip
        return
    a, b = as_tensor(actual), as_tensor(expected)
    tensors = isinstance(actual, Handle) and isinstance(expected, Handle)
    assert a.shape == b.shape, msg or f"shapes differ: {a.shape} and {b.shape}"
    if tensors and check_dtype:
        assert a.dtype is b.dtype, msg or f"dtypes differ: {a.dtype} and {b.dtype}"
    given = [_CLOSE.get(x.dtype.name, (0.0, 0.0)) for x in (a, b)]
    relative = max(each[0] for each in given) if rtol is None else rtol
    absolute = max(each[1] for each in given) if atol is None else atol
    close = isclose(a, b, rtol=relative, atol=absolute, equal_nan=equal_nan)
    far = close.numel() - int(close.sum())
    text = f"{far} of {close.numel()} elements differ by more than {absolute} + {relative} * |b|"
    assert not far, msg(text) if callable(msg) else msg or text


assert_allclose = assert_close
