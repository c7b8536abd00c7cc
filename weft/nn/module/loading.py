"""Loading of state dict values into a module's tensors, undone if another one does not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

import numpy as np

from weft.eager.record.memory import memory_pool
from weft.eager.tensor.dispatch import leaf
from weft.eager.tensor.handle import Handle
from weft.ir.shape import show
from weft.nn.parameter import Parameter, Uninitialized, is_lazy

ASSIGN = "assign_to_params_buffers"  # PyTorch's key in the metadata, for overridden loading

_undo: ContextVar[list[Callable[[], None]] | None] = ContextVar("undo", default=None)


@contextmanager
def taken_back_on_failure() -> Iterator[None]:
    """Undoes what `put` changed if the block raises."""
    back: list[Callable[[], None]] = []
    token = _undo.set(back)
    try:
        yield
    except BaseException:
        for undo in reversed(back):
            undo()
        raise
    finally:
        _undo.reset(token)


def put(module: Any, name: str, tensor: Any, value: Any, assign: bool) -> str | None:
    """Set a parameter or buffer of a module to its value in a state dict.

    Args:
        assign: the given tensor replaces the module's; else that one keeps its type and identity.

    Returns:
        The error message, if the value does not fit.
    """
    if is_lazy(value):
        if is_lazy(tensor):
            return None
        return (
            f"expected a value {show(tensor.shape)}, got an uninitialized parameter; "
            "call the module that the state comes from with an input first"
        )
    if not is_lazy(tensor):
        shape = tuple(getattr(value, "shape", np.shape(value)))
        if shape == () and tensor.shape == (1,):  # old files hold scalars instead of one element
            value, shape = np.reshape(_array(value), (1,)), (1,)
        if shape != tensor.shape:
            return (
                f"expected {show(tensor.shape)} as in the model, got {show(shape)} from the state "
                "dict"
            )
    change = _assign if assign else _copy
    back = change(module, name, tensor, value)
    undo = _undo.get()
    if undo is not None:
        undo.append(back)
    return None


def _copy(_: Any, __: str, tensor: Any, value: Any) -> Callable[[], None]:
    if isinstance(tensor, Uninitialized):
        back: Callable[[], None] = partial(
            _uninitialize, tensor, type(tensor), tensor.requires_grad, tensor.dtype
        )
        tensor.materialize(np.shape(_array(value)))
    else:
        back = partial(tensor.replace, tensor.lazy)
    tensor.replace(leaf(memory_pool.copied(_array(value), tensor.dtype.numpy), tensor.lazy))
    return back


def _uninitialize(tensor: Any, cls: type[Uninitialized], trained: bool, dtype: Any) -> None:
    tensor.__class__ = cls
    cls.__init__(tensor, trained, None, dtype)


def _assign(module: Any, name: str, tensor: Any, value: Any) -> Callable[[], None]:
    entries = module._parameters if isinstance(tensor, Parameter) else module._buffers
    if isinstance(tensor, Parameter) and not isinstance(value, Parameter):
        data = value if isinstance(value, Handle) else _array(value)
        value = Parameter(data, tensor.requires_grad)
    entries[name] = value
    return partial(entries.__setitem__, name, tensor)


def _array(value: Any) -> Any:
    if isinstance(value, Handle):
        return value.array
    detach = getattr(value, "detach", None)  # a tensor of another framework
    return np.asarray(value if detach is None else detach())
