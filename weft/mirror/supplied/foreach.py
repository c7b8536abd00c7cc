"""`torch._foreach_*`: a method of each tensor of a list; all are recorded in one program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

METHODS: Final = (
    "abs", "add", "addcdiv", "addcmul", "clamp_max", "clamp_min", "copy_", "div", "exp", "lerp",
    "log", "maximum", "minimum", "mul", "neg", "norm", "pow", "reciprocal", "sign", "sqrt", "sub",
    "zero_",
)  # fmt: skip
"""The methods; those that change tensors in place end in an underscore, others may."""


def each(method: str) -> Callable[..., list[Any] | None]:
    """The function that calls a method of each tensor, with its own part of lists.

    >>> import weft as wf
    >>> xs = [wf.ones(1), wf.ones(2)]
    >>> each("mul_")(xs, [2.0, 3.0])
    >>> [x.tolist() for x in xs]
    [[2.0], [3.0, 3.0]]
    """

    def foreach(tensors: Sequence[Any], *others: Any, **options: Any) -> list[Any] | None:
        rows = [[o[i] if isinstance(o, list | tuple) else o for o in others]
                for i in range(len(tensors))]  # fmt: skip
        found = [getattr(x, method)(*row, **options) for x, row in zip(tensors, rows, strict=True)]
        return None if method.endswith("_") else found

    foreach.__name__ = f"_foreach_{method}"
    return foreach


def __getattr__(name: str) -> Callable[..., list[Any] | None]:
    if name in METHODS or (name.endswith("_") and name[:-1] in METHODS):
        return each(name)
    raise AttributeError(name)
