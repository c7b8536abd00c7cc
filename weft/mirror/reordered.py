"""Functions that take their arguments in another order, or by other names."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from weft.mirror import table


@functools.cache
def reordered(function: Callable[..., Any], path: str) -> Callable[..., Any]:
    """The function with the arguments that TensorFlow 2 gives the one of this name.

    Raises:
        TypeError: too many arguments, or one of them twice.
    """
    names = table.arguments_of_2()[path]

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        if len(args) > len(names):
            raise TypeError(f"{path}: expected at most {len(names)} arguments, got {len(args)}")
        for name, value in zip(names, args, strict=False):
            if name in options:
                raise TypeError(f"{path}: got {name} twice")
            options[name] = value
        return function(**{names.get(name, name): value for name, value in options.items()})

    return call
