"""Special functions that SciPy computes, on arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from weft.documentation import named
from weft.eager.functions.elementwise.hosted import run_hosted
from weft.errors import DTypeError
from weft.numpy.convert import alike, floats
from weft.ops.special.hosted import HOSTED


@functools.cache
def function(name: str) -> Callable[..., Any]:
    """A function of `scipy.special` as one of arrays."""
    known = HOSTED[name]

    @named(name, known.face.doc)
    def run(*xs: Any) -> Any:
        if len(xs) != len(known.slopes):
            raise DTypeError.here(f"{name}: expected {len(known.slopes)} arguments, got {len(xs)}")
        return run_hosted(name, alike(*[floats(x) for x in xs]), name)

    return run
