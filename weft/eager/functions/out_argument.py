"""`out=`: results that are written to tensors which are there already, as in PyTorch."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Container
from enum import Enum, auto
from types import FunctionType
from typing import Any, Final, NoReturn, cast

from weft.eager.tensor.dispatch import Recorded
from weft.eager.tensor.handle import Handle
from weft.eager.tensor.view.inplace import write
from weft.errors import DTypeError, GradientError
from weft.ir.dtype import DType, as_dtype, uint8
from weft.ir.shape import show
from weft.ops.base import at_user_line
from weft.ops.refusal import REFUSABLE, entitled, refuse, refusing
from weft.ops.warning import warn

PLAIN: Final = frozenset(
    {"bool", "builtins.bool", "int", "float", "None", "DType", "Generator", "tuple[int, ...]"}
)
"""What functions return that give no tensors."""


RENAMED: Final = (("axis", "dim"), ("keepdims", "keepdim"))
"""NumPy's names of parameters, and PyTorch's."""


class Out(Enum):
    """How results go into the tensors that are given as `out=`."""

    SAME_KIND = auto()
    """Converted, if the tensor's kind holds them; several results, without conversion."""
    CASTABLE = auto()
    """Several results, each into any element type that holds it."""
    OWN_TYPE = auto()
    """Computed in their own type, not in that of `out`.

    Norms of complex numbers are real; integers have no NaN.
    """
    ANY_SHAPE = auto()
    """Into any shape of as many elements, in row-major order."""
    EXACT = auto()
    """Only into a tensor of the same element type; those of `all` and `any` also into uint8."""


def with_outlet(
    function: Any, module: str = "weft", name: str = "", rule: Out = Out.SAME_KIND
) -> Any:
    """A function of a public module behind a door (`refusing`), which takes `out=` for tensors.

    It takes its first argument under PyTorch's name, `input`, as well, and `dim` and `keepdim`
    under NumPy's.

    Args:
        name: by which the user calls it; its own if it is not given.
    """
    if not isinstance(function, FunctionType | Recorded):
        return function
    inner = cast("Callable[..., Any]", function)
    name = entitled(inner, name)
    gives, parameters = _signature(inner)
    if gives in PLAIN or "out" in parameters:
        return refusing(inner, name, module)

    @functools.wraps(inner)
    def called(*args: Any, out: Any = None, **options: Any) -> Any:
        try:
            if options:
                args = _renamed(args, options, parameters)
            if out is None:
                return inner(*args, **options)
            return _into(inner, parameters, out, args, options, rule)
        except REFUSABLE as error:
            refuse(error, name, inner, args, options)

    called.__module__ = module  # where it is found by its name, to be pickled for example
    return called


def _renamed(
    args: tuple[Any, ...], options: dict[str, Any], parameters: Container[str]
) -> tuple[Any, ...]:
    """Positional arguments, with one of PyTorch's name in front; NumPy's names become PyTorch's."""
    if "input" in options and "input" not in parameters:
        args = (options.pop("input"), *args)
    for name, theirs in RENAMED:
        if name in options and name not in parameters and theirs in parameters:
            options[theirs] = options.pop(name)
    return args


def _into(
    function: Callable[..., Any], parameters: Container[str], out: Any, args: tuple[Any, ...],
    options: dict[str, Any], rule: Out,
) -> Any:  # fmt: skip
    """The results of a function in the tensors that are given for them."""
    name = function.__name__
    if "dtype" in parameters and isinstance(out, Handle) and rule is not Out.OWN_TYPE:
        options["dtype"] = _common(name, options.get("dtype"), out.lazy.type.dtype)
    given = (*args, *options.values())
    return _written(name, _apart(function(*args, **options), given), out, rule)


def _apart(found: Any, given: tuple[Any, ...]) -> Any:
    """A result, which is none of the arguments: it is to be written to other memory."""
    return found.clone() if any([found is x for x in given]) else found


def _signature(function: Any) -> tuple[str, Container[str]]:
    """What a function is said to return, and its parameters."""
    inner = inspect.unwrap(getattr(function, "function", function))
    return str(inner.__annotations__.get("return", "")), inspect.signature(inner).parameters


def _common(name: str, wanted: Any, own: DType) -> DType:
    """The type that is computed in: that of the tensor that is written to, and no other."""
    if wanted is not None and as_dtype(wanted) is not own:
        _refuse(name, wanted, own)
    return own


def _refuse(name: str, wanted: Any, got: DType) -> NoReturn:
    text = f"{name}: out: expected a tensor of {wanted}, got {got}{at_user_line()}"
    raise DTypeError(text)


def _written(name: str, found: Any, out: Any, rule: Out) -> Any:
    """Results in the tensors that are given for them, which are returned.

    Raises:
        DTypeError: not a tensor for each result, or one of a kind that does not hold it.
        GradientError: gradients would flow.
    """
    if isinstance(found, tuple) and isinstance(out, tuple | list):
        results, targets = cast("tuple[Any, ...]", found), cast("list[Any]", out)
        if len(results) == len(targets):
            pairs = zip(results, targets, strict=True)
            each = Out.SAME_KIND if rule is Out.CASTABLE else Out.EXACT
            written = [_written(name, result, target, each) for result, target in pairs]
            make = getattr(type(results), "_make", tuple)
            return make(written)
    if not isinstance(found, Handle) or not isinstance(out, Handle):
        raise DTypeError(f"{name}: out: expected a tensor for each result{at_user_line()}")
    if found.lazy.tracked or out.lazy.tracked:
        raise GradientError(
            f"{name}: no gradients flow into out=; call it inside no_grad(), or on detached tensors"
            f"{at_user_line()}"
        )
    target: Any = out
    result: Any = found
    bytes_ = name in ("all", "any") and target.dtype is uint8
    if rule is Out.EXACT and target.dtype is not result.dtype and not bytes_:
        _refuse(name, result.dtype, target.dtype)
    if rule is Out.ANY_SHAPE and target.numel() == result.numel():
        result = result.reshape(target.shape)
    if target.shape != result.shape:
        if target.numel():
            warn(
                f"{name}: out: a tensor of shape {show(result.shape)} replaces elements of shape "
                f"{show(target.shape)}; give an empty one to be resized",
            )
        target.resize_(result.shape)
    return write(target, result.lazy, name)
