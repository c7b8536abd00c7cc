"""Classes of tensors that programs derive: results keep the class, or it overrides functions.

Such a class decides by PyTorch's protocol, `__torch_function__`, what functions and methods give.
The methods of `Tensor` ask it before they run (`weft.ops.override`): a class whose methods do so
takes the place of `Tensor` among the bases.
"""

from __future__ import annotations

import sys
from functools import cache, wraps
from types import FunctionType
from typing import Any, Final

from weft.eager.tensor.handle import Handle
from weft.eager.tensor.tensor import Tensor
from weft.errors import DTypeError
from weft.ir.node import PACKAGE
from weft.ops.override import Disabled, Overridden, is_inside_door, now, overridden, overriding

_frame: Final = sys._getframe  # pyright: ignore[reportPrivateUsage]
_shown: Final[Any] = vars(Handle)["shown"]


class Methods(Handle):
    """The methods of this module."""

    overrides_functions = False

    def __init_subclass__(cls, **options: Any) -> None:
        object.__init_subclass__(**options)
        own = vars(cls).get("__torch_function__")
        if (
            own is not disabled
            and Tensor in cls.__bases__
            and not cls.__module__.startswith("weft.")
        ):
            cls.__bases__ = tuple([_asking() if b is Tensor else b for b in cls.__bases__])

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:  # fmt: skip
        """Call a function, and give its results this class; classes override this.

        Args:
            func: a public function or method, or the getter of an attribute.
            types: the classes of arguments that override functions.
            args: its arguments.
            kwargs: those with names.
        """
        if not all([issubclass(cls, kind) for kind in types]):
            return NotImplemented
        with Disabled():
            found = func(*args, **(kwargs or {}))
        return found if getattr(func, "__self__", None) in _SAME else _of(cls, found)

    def as_subclass(self, cls: type[Any]) -> Any:
        """The same memory as a tensor of another class, whose `__init__` is not called.

        Raises:
            DTypeError: it is no tensor class.
        """
        if not issubclass(cls, Handle):
            raise DTypeError.here(f"as_subclass: expected a class of tensors, got {cls.__name__}")
        with Disabled():
            found: Any = self.view_as(self)  # type: ignore[attr-defined]
        found.__class__ = cls
        return found

    @staticmethod
    def _make_subclass(kind: type[Any], data: Any, require_grad: bool = False) -> Any:
        """A constant in the memory of a tensor, as a tensor of another class."""
        return data.detach().as_subclass(kind).requires_grad_(require_grad)


def disabled(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """`__torch_function__` of a class that overrides nothing: results are plain tensors."""
    del types
    return func(*args, **(kwargs or {}))


def _of(cls: type[Any], found: Any) -> Any:
    """Results as tensors of a class."""
    if isinstance(found, list | tuple):
        parts = [_of(cls, x) for x in found]
        return type(found)(*parts) if hasattr(found, "_fields") else type(found)(parts)
    is_other = isinstance(found, Tensor) and not isinstance(found, cls)
    return found.as_subclass(cls) if is_other else found


@cache
def _asking() -> type[Tensor]:
    """The class, made for the first class that a program derives."""
    found = {name: _asks(name) for name in dir(Tensor)}
    members = {name: member for name, member in found.items() if member is not None}
    members |= {"shown": property(_value, _set_value), "overrides_functions": True}
    members |= {"__iter__": _parts, "__hash__": Tensor.__hash__}
    return type("Tensor", (Tensor,), {"__slots__": (), "__module__": __name__, **members})


def _parts(self: Any) -> Any:
    return iter(overridden(getattr(Tensor, "unbind"), [self], (self,), {}))  # noqa: B009


_SAME: Final = (Tensor.grad, Tensor._base)  # pyright: ignore[reportPrivateUsage]
"""Attributes that are tensors of their own, whatever the class of this one."""


def _value(self: Handle) -> Any:
    if not now.off and is_inside_door(_frame(1)):
        raise Overridden(f"{type(self).__name__} overrides functions")
    return _shown.__get__(self)


def _set_value(self: Handle, value: Any) -> None:
    _shown.__set__(self, value)


def _asks(name: str) -> Any:
    """A member of `Tensor` that asks the class of its arguments first; `None` if it does not."""
    owner = next(c for c in Tensor.__mro__ if name in vars(c))
    inherited: Any = vars(owner)[name]
    if owner is Handle or name in ("as_subclass", "__init__") or name[0] == "_" != name[1]:
        return None
    if isinstance(inherited, property):
        getter, setter = inherited.__get__, inherited.__set__
        asked = _asked(lambda self: getter(self), getter)
        return property(asked, _asked(lambda self, x: setter(self, x), setter))
    if isinstance(inherited, FunctionType):
        return _asked(getattr(Tensor, name), getattr(Tensor, name))
    return None


def _asked(function: Any, public: Any) -> Any:
    @wraps(function)
    def asks(self: Any, *args: Any, **options: Any) -> Any:
        if now.off:
            return function(self, *args, **options)
        at = _frame(1)
        if at.f_code.co_filename.startswith(PACKAGE):
            if is_inside_door(at):
                raise Overridden(f"{type(self).__name__} overrides functions")
            with Disabled():
                return function(self, *args, **options)
        given = (self, *args)
        return overridden(public, overriding(given, options), given, options)

    return asks
