"""Methods of divided tensors that go element by element; faces of operations tell which."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any

from weft.documentation import named
from weft.eager.tensor.tensor import Tensor
from weft.ops.declaration.face import FACES, arity


def of_one(name: str) -> Callable[..., Any]:
    """The method of tensors `name`, on each rank's elements."""

    @named(name, getattr(Tensor, name).__doc__)
    def method(self: Arithmetic, *args: Any, **kwargs: Any) -> Any:
        return self.by_element(name, *args, **kwargs)

    return method


def of_two(name: str, swapped: bool = False) -> Callable[[Any, Any], Any]:
    """The method or operator of tensors `name`, on each rank's elements and others."""

    @named(name, getattr(Tensor, name).__doc__)
    def method(self: Arithmetic, other: Any) -> Any:
        return self.with_other(name, other, swapped)

    return method


class Arithmetic(abc.ABC):
    """The methods that go element by element."""

    __slots__ = ()

    @abc.abstractmethod
    def by_element(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """A method of tensors that goes element by element."""

    @abc.abstractmethod
    def with_other(self, name: str, other: Any, swapped: bool = False) -> Any:
        """A method of tensors that goes element by element through two; or with a number."""


for _name, _source in FACES.items():
    if _source.face.dtensor:
        setattr(Arithmetic, _name, (of_one if arity(_source) == 1 else of_two)(_name))
