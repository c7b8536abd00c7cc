"""Turns plain exceptions from bad arguments into Weft's errors.

Functions raise errors for what they check themselves. Any other exception from an unsuitable
argument (a missing attribute, no length) becomes an error that names the operation, its parameters
and the arguments. The plain exception is its cause, and the error also has its type.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable, Mapping
from types import FunctionType, TracebackType
from typing import Any, Final, TypeVar, cast

import numpy as np

from weft.errors import (
    ArgumentError,
    DivisionError,
    DTypeError,
    KindError,
    LendingError,
    OutOfRangeError,
    TooLargeError,
    UnknownKeyError,
    WeftError,
)
from weft.exports import home_of
from weft.ir.hooks import HOOKS
from weft.ir.node import PACKAGE, PLACE, at_user_line
from weft.ir.shape import show
from weft.ops.override import DOORS, Disabled, Overridden, is_inside_door, overridden, overriding

F = TypeVar("F", bound=Callable[..., Any])


def check_function(function: object, what: str) -> None:
    """Raises DTypeError if it is no function or other callable object.

    >>> check_function(3, "grad")
    Traceback (most recent call last):
    weft.errors.DTypeError: grad: expected a function, got 3
    """
    if not callable(function):
        raise DTypeError.here(f"{what}: expected a function, got {function!r}")


REFUSALS: Final[tuple[tuple[type[Exception], type[WeftError]], ...]] = (
    (KeyError, UnknownKeyError),
    (IndexError, OutOfRangeError),
    (AttributeError, KindError),
    (TypeError, DTypeError),
    (OverflowError, TooLargeError),
    (ZeroDivisionError, DivisionError),
    (ValueError, ArgumentError),
    (StopIteration, ArgumentError),
    (BufferError, LendingError),
)
"""The errors for plain exceptions, which also have their types; the first that fits."""

REFUSABLE: Final = (WeftError, *[plain for plain, _ in REFUSALS])
"""The exceptions that a door catches, for `refuse` to handle."""

_SITE: Final = os.path.dirname(os.path.dirname(np.__file__)) + os.sep
_PARTS: Final = (
    PACKAGE,
    *[f"{at}{n}/" for at in (_SITE, "") for n in ("numpy", "scipy")],
    "<frozen",
)
"""Paths of the package's dependencies; compiled parts of NumPy name paths within them."""
_PYTHON: Final = os.path.dirname(os.__file__) + os.sep


def refusing(function: F, name: str | None = None, module: str | None = None) -> F:
    """A function behind a door: its exceptions for bad arguments become Weft's errors.

    Args:
        name: the public name of the operation; by default that of the function.
        module: where it is found by its name, for example when pickled.
    """
    called_as = entitled(function, name)

    @functools.wraps(function)
    def called(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except REFUSABLE as error:
            return refuse(error, called_as, function, args, options, called)

    return _behind(called, module)


def remembering(function: F, name: str | None = None, module: str | None = None) -> F:
    """`refusing` for a function of tensors: calls like earlier ones are recorded at once."""
    make = HOOKS.memory
    if make is None:
        return refusing(function, name, module)
    called_as, memory = entitled(function, name), make(function)

    @functools.wraps(function)
    def called(*args: Any, **options: Any) -> Any:
        try:
            way = memory.way
            if way is None:
                return function(*args, **options)
            found = way(args, options)
            if found is not None:
                return found
            before = memory.watch()
            found = function(*args, **options)
            if before is not None:
                memory.learn(before, args, options, found)
            return found
        except REFUSABLE as error:
            return refuse(error, called_as, function, args, options, called)

    return _behind(called, module)


def _behind(called: Any, module: str | None) -> Any:
    """A door, marked as one."""

    called.__module__ = module or called.__module__
    return guarded(called)


def entitled(function: Callable[..., Any], name: str | None) -> str:
    """The public name of a function; set on functions made by a builder."""
    if name and "<locals>" in function.__qualname__:
        function.__name__ = function.__qualname__ = name
    return name or function.__name__


def guard(namespace: dict[str, Any], module: str = "") -> None:
    """Put the public functions of a module behind doors: those in `__all__`, or all.

    Args:
        module: where they are found; by default this one.
    """
    for name in namespace.get("__all__", [n for n in namespace if n[0] != "_"]):
        function: Any = namespace.get(name)  # none yet of what is loaded on first use
        known = is_guarded(function) and function.__name__ == name
        if not known and (isinstance(function, FunctionType) or hasattr(function, "__wrapped__")):
            namespace[name] = remembering(function, name, module or namespace["__name__"])


_HINTS: Final = {"memory_format"}
"""Arguments that are checked elsewhere; `x.float()` has no others."""


def guard_methods(cls: type[Any], base: type[Any]) -> None:
    """Put the public methods and class methods of a class behind doors.

    Except those of `base`, those without arguments, and those that call `refuse` themselves, so
    that the most frequent operations pay for no further call.
    """
    members: dict[str, Any] = {}
    for part in reversed(cls.__mro__):
        if issubclass(part, base) and part is not base:
            members.update(vars(part))
    for name, function in members.items():
        body = function.__func__ if isinstance(function, classmethod) else function
        if isinstance(body, FunctionType) and name[0] != "_" and _takes_more(body):
            made = remembering(body, name)
            setattr(cls, name, made if body is function else classmethod(made))


def guard_making(cls: type[Any]) -> None:
    """Put the constructor of a class behind a door."""
    function = cls.__init__

    @functools.wraps(function)
    def made(self: Any, *args: Any, **options: Any) -> None:
        try:
            function(self, *args, **options)
        except REFUSABLE as error:
            refuse(error, cls.__name__, functools.partial(function, self), args, options)

    cls.__init__ = made


class GuardedMaking:
    """Base of classes whose constructors are behind a door."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__module__.startswith("weft."):
            guard_making(cls)


def _takes_more(function: FunctionType) -> bool:
    """Whether a method has arguments besides `self`, and no `guarded` body."""
    code = function.__code__
    names = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    more = bool(set(names) - _HINTS or code.co_flags & inspect.CO_VARARGS)
    return more and not is_guarded(function)


def guarded(function: F) -> F:
    """Mark a function that calls `refuse` itself."""
    function.guarded = function  # type: ignore[attr-defined]  # which `functools.wraps` copies
    DOORS.add(cast(FunctionType, function).__code__)
    return function


def is_guarded(function: Any) -> bool:
    """Whether it calls `refuse` itself; false for a wrapper of such a function."""
    return getattr(function, "guarded", ...) is function


def refuse(
    error: Exception,
    name: str,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    options: Mapping[str, Any],
    door: Callable[..., Any] | None = None,
) -> Any:
    """Raise the error for the exception that a door caught; called inside the `except`.

    The exception is unchanged behind an inner door, called by another function of the package, and
    if a user's function raised it. If the class of an argument overrides functions, it gives the
    result instead (`weft.ops.override`).

    Args:
        door: the public function; by default `function`.

    Raises:
        WeftError: names the operation, its parameters and the arguments.
    """
    frame = sys._getframe  # pyright: ignore[reportPrivateUsage]
    at = frame(2)
    trace = cast(TracebackType, error.__traceback__).tb_next
    if _of_callback(trace):
        raise
    if frame(1).f_code in DOORS and not is_inside_door(at):
        found = overriding(args, options)
        if found:
            return overridden(door or function, found, args, options)
        if isinstance(error, Overridden):  # a tensor that is no argument
            with Disabled():
                return (door or function)(*args, **options)
    if at.f_code.co_filename.startswith(PACKAGE):
        raise
    if isinstance(error, WeftError):
        if error.nameless:
            error.entitle(name, at_user_line())
        raise
    refusal = _refusal(error, trace is None, name, function, args, options)
    if refusal is None:
        raise
    raise refusal from error


def _refusal(
    error: Exception, at_call: bool, name: str, function: Callable[..., Any],
    args: tuple[Any, ...], options: Mapping[str, Any],
) -> WeftError | None:  # fmt: skip
    """The error for a plain exception; `None` if its own message is good enough.

    Such are messages of the package, which include the place, and Python's for a wrong call:
    `name() got an unexpected keyword argument`.
    """
    text = str(error)
    if PLACE in text or (at_call and text.split("(")[0].split(".")[-1] == name):
        return None
    kind = next((own for plain, own in REFUSALS if isinstance(error, plain)), None)
    if kind is None or isinstance(error, np.linalg.LinAlgError):
        return None
    reason = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return kind(
        f"{name}: expected {name}({_parameters(function)}), got {name}({_given(args, options)}); "
        f"{reason}{at_user_line()}"
    )


def _of_callback(trace: TracebackType | None) -> bool:
    """Whether the exception passed through a user's function."""
    while trace is not None:
        frame = trace.tb_frame
        generated = str(frame.f_globals.get("__name__")).startswith("weft.")  # a dataclass's code
        if not generated and _is_theirs(frame.f_code.co_filename):
            return True
        trace = trace.tb_next
    return False


def _is_theirs(file: str) -> bool:
    """Whether a file is outside the package and its dependencies."""
    if file.startswith(_PARTS):
        return False
    return not file.startswith(_PYTHON) or file.startswith(_PYTHON + "site-packages")


def _parameters(function: Callable[..., Any]) -> str:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return "..."
    bare = [p.replace(annotation=p.empty) for p in parameters]
    told = [p.replace(default=...) if type(p.default) is object else p for p in bare]
    return str(inspect.Signature(told))[1:-1].replace("Ellipsis", "...")


def _given(args: tuple[Any, ...], options: Mapping[str, Any]) -> str:
    return ", ".join([*map(shown, args), *[f"{k}={shown(v)}" for k, v in options.items()]])


MOST_SHOWN: Final = 4  # entries of a sequence
MOST_LETTERS: Final = 40
_LITERALS: Final = (type(None), bool, int, float, complex, str, bytes)


def shown(value: Any, depth: int = 2) -> str:
    """A value in messages: numbers and strings as they are, others by kind and shape."""
    kind = type(value)
    if kind in _LITERALS:
        if kind is int and value.bit_length() > 4 * MOST_LETTERS:
            return f"a number of {value.bit_length()} bits"
        text = repr(value)
        return text if len(text) <= MOST_LETTERS else text[: MOST_LETTERS - 4] + "..."
    if kind in (list, tuple) and depth:
        entries = [shown(v, depth - 1) for v in value[:MOST_SHOWN]]
        inside = ", ".join([*entries, "..."] if len(value) > MOST_SHOWN else entries)
        return f"[{inside}]" if kind is list else f"({inside})"
    if isinstance(value, type):
        return value.__name__
    if kind is np.ndarray or home_of(kind).partition(".")[0] == "weft":
        dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
        if shape is not None:
            return f"{dtype}{show(shape) if isinstance(shape, tuple) else shape}"
    return kind.__name__
