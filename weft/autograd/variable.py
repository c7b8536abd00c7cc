"""`Variable`: an old name of tensors, for older programs."""

from __future__ import annotations

from typing import Any

from weft.eager.tensor.tensor import Tensor
from weft.ops.warning import warn

__all__ = ["Variable"]


class _Alias(type):
    """The metaclass of `Variable`, for which every tensor is an instance."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, Tensor)


class Variable(metaclass=_Alias):
    """A tensor that shares the memory of `data`, as in older PyTorch programs.

    >>> import weft as wf
    >>> x = Variable(wf.ones(2), requires_grad=True)
    >>> x.requires_grad, isinstance(x, Variable), type(x) is wf.Tensor
    (True, True, True)
    """

    def __new__(cls, data: Any, requires_grad: bool = False, volatile: bool | None = None) -> Any:
        """The tensor; `volatile` has had no effect since PyTorch 0.4, and warns."""
        if volatile is not None:
            warn("Variable: volatile has no effect: compute under torch.no_grad()")
        return data.detach().requires_grad_(requires_grad)
