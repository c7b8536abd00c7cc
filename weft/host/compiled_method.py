"""Methods from source text, as dataclasses make theirs: no slower than those written by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def compiled_method(
    cls: type[Any],
    name: str,
    parameters: Iterable[str],
    lines: Iterable[str],
    names: Mapping[str, Any],
) -> Any:
    """A method of a class; Python itself checks its calls and says what is wrong.

    Args:
        cls: the class, which has the method in its messages.
        name: the method's name.
        parameters: what is between the parentheses, without defaults.
        lines: the body.
        names: what the body uses besides its arguments.

    >>> class Scale:
    ...     factor = 2.0
    >>> lines = ["return float_(self.factor * x)"]
    >>> Scale.applied = compiled_method(Scale, "applied", ["self", "x"], lines, {"float_": float})
    >>> Scale().applied(3), Scale.applied.__qualname__
    (6.0, 'Scale.applied')
    """
    method = compiled_function(cls.__module__, name, parameters, lines, names, cls.__name__)
    method.__qualname__ = f"{cls.__qualname__}.{name}"
    return method


def compiled_function(
    module: str,
    name: str,
    parameters: Iterable[str],
    lines: Iterable[str],
    names: Mapping[str, Any],
    place: str = "",
) -> Any:
    """The same for a function of a module.

    Args:
        place: where errors say that it is written, besides here.

    >>> compiled_function(__name__, "double", ["x"], ["return two * x"], {"two": 2})(4)
    8
    """
    text = "\n    ".join([f"def {name}({', '.join(parameters)}):", *lines])
    namespace = {**names, "__name__": module}
    # A path in the package: errors name the line of the caller, not one of this text.
    exec(compile(text, f"{__file__[:-3]}/{place or name}", "exec"), namespace)
    return namespace[name]
