"""`torch.library`, `torch.ops`, `torch.overrides` and `torch._C`: PyTorch's registry of operators.

Weft has none: declarations of packages are taken and have no effect, so that the packages can be
imported; their Python functions run as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import update_wrapper
from pathlib import Path
from typing import Any, Final, NoReturn

from weft.eager.tensor.autograd.custom_function import Function
from weft.eager.tensor.tensor import Tensor
from weft.mirror.supplied.same import given, nothing, same
from weft.ops.override import Disabled, overridden, overriding

__all__ = [
    "DisableTorchFunction", "DisableTorchFunctionSubclass", "DispatchKey", "DispatchKeySet",
    "Library", "custom_op", "define", "get_ctx", "handle_torch_function", "has_torch_function",
    "has_torch_function_unary", "has_torch_function_variadic", "impl", "impl_abstract",
    "is_tensor_like", "load_library", "register_autocast", "register_autograd", "register_fake",
    "register_kernel", "register_vmap", "triton_op", "wrap_triton",
]  # fmt: skip

DisableTorchFunctionSubclass = DisableTorchFunction = Disabled
_LIBRARIES: Final = "_C", "image"
_made: dict[str, CustomOp] = {}


class DispatchKeySet(frozenset[str]):
    """Kinds of calls that an operator is registered for; no call asks for them."""


class _Keys:
    """The kinds by name."""

    def __getattr__(self, name: str) -> DispatchKeySet:
        return DispatchKeySet([name])


DispatchKey = _Keys()
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


class CustomOp:
    """A function of the program that is an operator: it runs as it is, with the given gradient."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._gradient: Any = None
        update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        if self._gradient is None:
            return self._function(*arguments)
        return self._gradient.apply(*arguments)

    def register_autograd(self, backward: Any, /, *, setup_context: Any = None) -> None:
        """Set the gradient: `backward(ctx, *gradients)`, and what keeps values for it."""

        def forward(*arguments: Any) -> Any:
            return self._function(*arguments)

        def keep(ctx: Any, inputs: Any, output: Any) -> None:
            if setup_context is not None:
                setup_context(ctx=ctx, inputs=inputs, output=output)

        methods: dict[str, Any] = {"forward": forward, "setup_context": keep, "backward": backward}
        statics = {name: staticmethod(method) for name, method in methods.items()}
        self._gradient = type(self._function.__name__, (Function,), statics)

    register_fake = register_kernel = staticmethod(given)

    @property
    def default(self) -> CustomOp:
        """Its only overload."""
        return self


class _Namespace:
    """The operators of a program whose names begin alike: `torch.ops.NAMESPACE`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> CustomOp:
        op = _made.get(f"{self._name}::{name}")
        if op is None:
            raise AttributeError(f"torch.ops.{self._name}.{name}: there is no such operator")
        return op


def custom_op(name: str, fn: Any = None, /, **options: Any) -> Any:
    """A decorator that makes a function an operator."""
    del options

    def made(function: Any) -> CustomOp:
        return _made.setdefault(name, CustomOp(function))

    return made if fn is None else made(fn)


def register_autograd(op: Any, backward: Any, /, **options: Any) -> None:
    """Set the gradient of an operator of `custom_op`; a compiled operator is not there."""
    found = op if isinstance(op, CustomOp) else _made.get(op)
    if found is not None:
        found.register_autograd(backward, setup_context=options.get("setup_context"))


register_vmap = nothing
triton_op = custom_op
wrap_triton = same


def __getattr__(name: str) -> _Namespace:
    if not any(known.startswith(f"{name}::") for known in _made):
        raise AttributeError(f"torch.ops.{name}: there are no such operators")
    return _Namespace(name)


def get_ctx() -> NoReturn:
    """Refused: there is no context of a shape function.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError("torch.library.get_ctx: Weft has none")


def load_library(path: Any) -> None:
    """Take torchvision's operators, which Weft has; others are compiled for PyTorch.

    Raises:
        OSError: it is another library.
    """
    library = Path(path)
    if library.parent.name == "torchvision" and library.name.startswith(_LIBRARIES):
        return
    raise OSError(f"{path}: its operators are compiled for PyTorch, which is not loaded")


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether the class of an argument overrides functions."""
    return bool(overriding(relevant_args, {}))


def has_torch_function_variadic(*args: Any) -> bool:
    """`has_torch_function` of several arguments."""
    return has_torch_function(args)


has_torch_function_unary = has_torch_function_variadic


def handle_torch_function(
    public_api: Any, relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """What the classes of these arguments make of a function.

    Raises:
        TypeError: none implements it.
    """
    return overridden(public_api, overriding(relevant_args, {}), args, kwargs)


def is_tensor_like(inp: Any) -> bool:
    """Whether it is a tensor, or its class overrides functions."""
    return isinstance(inp, Tensor) or hasattr(type(inp), "__torch_function__")
