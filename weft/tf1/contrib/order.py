"""Functions whose older form in `tf.contrib` has its arguments in another order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.documentation import named


def ordered(function: Callable[..., Any], title: str, *order: str) -> Callable[..., Any]:
    """A function of the same arguments in another order.

    Args:
        function: takes them by name.
        title: the name of the result.
        order: the names of its arguments.
    """

    @named(title, f"`tf.{function.__module__.rpartition('tf1.')[2].partition('.')[0]}`'s "
                  f"`{function.__name__}`, of ({', '.join(order)}).")  # fmt: skip
    def other(*args: Any, **options: Any) -> Any:
        if len(args) > len(order):
            raise TypeError(f"{title}: expected at most {len(order)} arguments, got {len(args)}")
        given = dict(zip(order, args, strict=False))
        twice = sorted(given.keys() & options.keys())
        if twice:
            raise TypeError(f"{title}: expected one value for {twice[0]}, got two")
        return function(**given, **options)

    return other
