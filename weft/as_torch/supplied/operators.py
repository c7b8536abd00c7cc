"""`torch.library`, `torch.ops`, `torch.overrides` and `torch._C`: PyTorch's registry of operators.

Weft has none: declarations of packages are taken and have no effect, so that the packages can be
imported; their Python functions run as they are.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, NoReturn

from weft.as_torch.supplied.same import no, nothing, same
from weft.eager.tensor.tensor import Tensor

__all__ = [
    "DisableTorchFunctionSubclass", "DispatchKey", "DispatchKeySet", "Library", "custom_op",
    "define", "get_ctx", "handle_torch_function", "has_torch_function",
    "has_torch_function_unary", "has_torch_function_variadic", "impl", "impl_abstract",
    "is_tensor_like", "load_library", "register_autocast", "register_autograd", "register_fake",
    "register_kernel", "register_vmap", "triton_op", "wrap_triton",
]  # fmt: skip

DisableTorchFunctionSubclass = nullcontext
_made: set[str] = set()


class DispatchKeySet(frozenset[str]):
    """Kinds of calls that an operator is registered for; no call asks for them."""


class _Keys:
    """The kinds by name."""

    def __getattr__(self, name: str) -> DispatchKeySet:
        return DispatchKeySet([name])


DispatchKey = _Keys()
has_torch_function = has_torch_function_unary = has_torch_function_variadic = no
define = register_autocast = nothing


class Library:
    """A group of operators; what is added to it has no effect."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        del arguments, options

    def define(self, *arguments: Any, **options: Any) -> None:
        """Has no effect."""

    def impl(self, *arguments: Any, **options: Any) -> None:
        """Has no effect."""


def register_fake(op: Any, func: Any = None, /, **options: Any) -> Any:
    """A decorator that returns the function: shapes follow from what runs."""
    del op
    return same(func, **options)


impl_abstract = register_fake


def impl(qualname: Any, types: Any, func: Any = None, **options: Any) -> Any:
    """A decorator that returns the function."""
    del qualname, types
    return same(func, **options)


register_kernel = impl


def custom_op(name: str, fn: Any = None, /, **options: Any) -> Any:
    """A decorator that returns the function, which runs as it is."""
    _made.add(name)

    def given(function: Any) -> Any:
        function.register_fake = same
        function.register_kernel = lambda *types, **more: same
        function.register_autograd = refuse_gradient
        return function

    del options
    return given if fn is None else given(fn)


triton_op = custom_op
wrap_triton = same


def refuse_gradient(*arguments: Any, **options: Any) -> NoReturn:
    """Refused: gradients that are registered apart are not known.

    Raises:
        NotImplementedError: always.
    """
    del arguments, options
    raise NotImplementedError(
        "torch.library.register_autograd: Weft has none: write a torch.autograd.Function"
    )


def register_autograd(op: Any, backward: Any, /, **options: Any) -> None:
    """Has no effect for a compiled operator, which is not there.

    Raises:
        NotImplementedError: it is an operator of `custom_op`.
    """
    if not isinstance(op, str) or op in _made:
        refuse_gradient(backward, **options)


register_vmap = register_autograd


def get_ctx() -> NoReturn:
    """Refused: there is no context of a shape function.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError("torch.library.get_ctx: Weft has none")


def load_library(path: Any) -> NoReturn:
    """Refused: compiled operators are PyTorch's.

    Raises:
        OSError: always.
    """
    raise OSError(f"{path}: its operators are compiled for PyTorch, which is not loaded")


def handle_torch_function(public_api: Any, relevant_args: Any, *args: Any, **kwargs: Any) -> Any:
    """The function itself: no class overrides it."""
    del relevant_args
    return public_api(*args, **kwargs)


def is_tensor_like(inp: Any) -> bool:
    """Whether it is a tensor."""
    return isinstance(inp, Tensor)
