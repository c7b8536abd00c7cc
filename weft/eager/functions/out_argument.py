"""`out=`: results written to existing tensors, as in PyTorch."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Container
from types import FunctionType
from typing import Any, Final, NoReturn, cast

from weft.eager.functions.recall.memory import Memory
from weft.eager.tensor.dispatch import Recorded
from weft.eager.tensor.handle import Handle
from weft.eager.tensor.view.inplace import write
from weft.errors import DTypeError, GradientError, nameless
from weft.ir.dtype import DType, as_dtype, uint8
from weft.ir.node import at_user_line
from weft.ir.shape import show
from weft.ops.declaration import Out as Out
from weft.ops.override import DOORS
from weft.ops.refusal import REFUSABLE, entitled, is_guarded, refuse, refusing
from weft.ops.warning import warn

PLAIN: Final = frozenset(
    {"bool", "builtins.bool", "int", "float", "None", "DType", "Generator", "tuple[int, ...]"}
)
"""Return types of functions that return no tensors."""


RENAMED: Final = (("axis", "dim"), ("keepdims", "keepdim"), ("size", "shape"))
"""Other names of parameters, and Weft's."""
FIRST: Final = ("input", "tensor")
"""PyTorch's names of the first argument."""


def with_outlet(
    function: Any, module: str = "weft", name: str = "", rule: Out = Out.SAME_KIND
) -> Any:
    """A public function behind a door (`refusing`) that also takes `out=`.

    It also takes its first argument as `input`, as in PyTorch, and `dim` and `keepdim` under
    NumPy's names.

    Args:
        name: the public name; by default its own.
    """
    if not isinstance(function, FunctionType | Recorded):
        return function
    inner = cast("Callable[..., Any]", function)
    name = entitled(inner, name)
    gives, parameters = _signature(inner)
    if gives in PLAIN or "out" in parameters:
        return refusing(inner, name, module)
    memory = None if is_guarded(inner) else Memory(inner)

    @functools.wraps(inner)
    def called(*args: Any, out: Any = None, **options: Any) -> Any:
        try:
            if options:
                args = _renamed(args, options, parameters)
            if out is None:
                way = None if memory is None else memory.way
                if way is None or memory is None:
                    return inner(*args, **options)
                found = way(args, options)
                if found is None:
                    before = memory.watch()
                    found = inner(*args, **options)
                    if before is not None:
                        memory.learn(before, args, options, found)
                return found
            return _into(inner, parameters, out, args, options, rule)
        except REFUSABLE as error:
            return refuse(error, name, inner, args, options, called)

    DOORS.add(cast("Any", called).__code__)
    called.__module__ = module  # found there by its name, for example when pickled
    return called


def _renamed(
    args: tuple[Any, ...], options: dict[str, Any], parameters: Container[str]
) -> tuple[Any, ...]:
    """Arguments with `input` made positional and NumPy's names mapped to PyTorch's."""
    for name in FIRST:
        if name in options and name not in parameters:
            args = (options.pop(name), *args)
    for name, theirs in RENAMED:
        if name in options and name not in parameters and theirs in parameters:
            if theirs in options:
                raise nameless(DTypeError(f"expected {theirs} or {name}, got both{at_user_line()}"))
            options[theirs] = options.pop(name)
    return args


def _into(
    function: Callable[..., Any], parameters: Container[str], out: Any, args: tuple[Any, ...],
    options: dict[str, Any], rule: Out,
) -> Any:  # fmt: skip
    """The results of a function, written to the `out=` tensors."""
    name = function.__name__
    if "dtype" in parameters and isinstance(out, Handle) and rule is not Out.OWN_TYPE:
        options["dtype"] = _common(name, options.get("dtype"), out.lazy.type.dtype)
    given = (*args, *options.values())
    return _written(name, _apart(function(*args, **options), given), out, rule)


def _apart(found: Any, given: tuple[Any, ...]) -> Any:
    """A result that is no argument itself, to be copied to other memory."""
    return found.clone() if any([found is x for x in given]) else found


def _signature(function: Any) -> tuple[str, Container[str]]:
    """The annotated return type of a function, and its parameters."""
    inner = inspect.unwrap(getattr(function, "function", function))
    return str(inner.__annotations__.get("return", "")), inspect.signature(inner).parameters


def _common(name: str, wanted: Any, own: DType) -> DType:
    """The dtype to compute in: that of the `out=` tensor, which `dtype=` must equal."""
    if wanted is not None and as_dtype(wanted) is not own:
        _refuse(name, wanted, own)
    return own


def _refuse(name: str, wanted: Any, got: DType) -> NoReturn:
    text = f"{name}: out: expected a tensor of {wanted}, got {got}{at_user_line()}"
    raise DTypeError(text)


def _written(name: str, found: Any, out: Any, rule: Out) -> Any:
    """Write results to the `out=` tensors, and return these.

    Raises:
        DTypeError: not a tensor for each result, or a dtype that cannot hold it.
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
        raise DTypeError.here(f"{name}: out: expected a tensor for each result")
    if found.lazy.tracked or out.lazy.tracked:
        raise GradientError.here(
            f"{name}: no gradients flow into out=; call it inside no_grad(), or on detached tensors"
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
