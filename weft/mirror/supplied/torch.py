"""Names at the top of `torch` that only programs for PyTorch ask for."""

from __future__ import annotations

from typing import Any

import ml_dtypes

from weft.distributions import Dirichlet
from weft.eager.tensor.device import refuse_cuda
from weft.eager.tensor.dtype.dtype_info import finfo as limits
from weft.eager.tensor.dtype.dtype_name import dtype_meant
from weft.eager.tensor.dtype.promotion import set_default_dtype
from weft.ir.dtype import as_dtype
from weft.mirror.supplied.absent import Absent
from weft.mirror.supplied.same import nothing, same
from weft.ops.refusal import refusing

__all__ = [
    "check", "compile", "custom_fwd", "finfo", "get_num_interop_threads", "sample_dirichlet",
    "set_default_tensor_type", "set_num_interop_threads", "set_warn_always", "typename",
]  # fmt: skip

compile = same
set_num_interop_threads = set_warn_always = nothing


def typename(obj: Any, /) -> str:
    """The name of an object's class, with its module.

    >>> typename(1)
    'int'
    """
    kind = obj if isinstance(obj, type) else type(obj)
    place = kind.__module__
    return kind.__qualname__ if place == "builtins" else f"{place}.{kind.__qualname__}"


def sample_dirichlet(input: Any) -> Any:
    """Draws of a Dirichlet distribution with these concentrations."""
    return Dirichlet(input).sample()


@refusing
def check(condition: Any, message: Any = "") -> None:
    """An assertion that PyTorch can trace.

    Raises:
        AssertionError: the condition is false.
    """
    if not condition:
        raise AssertionError(message() if callable(message) else message)


check.__name__ = "_assert"


def set_default_tensor_type(t: Any) -> None:
    """Set the default dtype by a class of tensors, or its name.

    Raises:
        DTypeError: it has no floating-point elements.
        ConfigError: its tensors live on another device.
    """
    name = t if isinstance(t, str) else f"torch.{t.__name__}"
    if name.startswith("torch.cuda."):
        refuse_cuda("set_default_tensor_type")
    set_default_dtype(as_dtype(dtype_meant(name)))


def get_num_interop_threads() -> int:
    """How many operations run beside each other: 1, as threads share each of them."""
    return 1


def custom_fwd(fwd: Any = None, *, device_type: str = "cuda", cast_inputs: Any = None) -> Any:
    """A decorator of `forward` of a custom function, which gives the function back.

    Raises:
        NotImplementedError: the inputs are to be cast under autocast of the CPU.
    """
    if device_type == "cpu" and cast_inputs is not None:
        raise NotImplementedError("torch.amp.custom_fwd: cast the inputs in forward()")
    return same(fwd)


def finfo(dtype: Any = None) -> Any:
    """The limits of a floating-point type; also of the 8-bit ones, which no tensor has here."""
    if isinstance(dtype, Absent):
        return ml_dtypes.finfo(dtype.__name__)
    return limits(dtype)
