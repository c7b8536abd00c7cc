"""`skip_init`: modules made without initializing their values."""

from __future__ import annotations

import inspect
from typing import Any, TypeVar

from weft.errors import StateError
from weft.nn.init import skipped
from weft.nn.module.module import Module

M = TypeVar("M", bound=Module)


def skip_init(module_cls: type[M], *args: Any, **kwargs: Any) -> M:
    """A module made without its `weft.nn.init` calls, for values that come from elsewhere.

    Args:
        module_cls: its class, which takes `device`.
        args: for the class, like `kwargs`.

    Raises:
        StateError: it is not a module class that takes `device`.

    >>> from weft import nn
    >>> nn.utils.skip_init(nn.Linear, 5, 1)
    Linear(in_features=5, out_features=1, bias=True)
    """
    if not (isinstance(module_cls, type) and issubclass(module_cls, Module)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise StateError.here(f"skip_init: expected a class of modules, got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise StateError.here(
            f"skip_init: expected a class that takes device, {module_cls.__name__} does not"
        )
    with skipped():
        return module_cls(*args, **kwargs)
