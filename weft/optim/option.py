"""Options of optimizers, as fields of their classes.

`lr: float = nonnegative(default=1e-3)` in a class's body is an argument of its constructor, with
its check and default, and an entry of parameter groups. Type checkers read it as a dataclass's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from weft.errors import OptimizerError
from weft.host.compiled_method import compiled_method

T = TypeVar("T")
Check = Callable[[str, str, Any], Any]
"""From the optimizer's name, the option's and a value to the checked value."""


class Option(NamedTuple):
    """A field of an optimizer class.

    Attributes:
        default: its value if left out.
        check: returns the value, or raises OptimizerError.
        grouped: whether parameter groups have it, each with a value of its own.
        keyword: whether it is given by keyword only: what follows `_: KW_ONLY`.
    """

    default: Any
    check: Check | None = None
    grouped: bool = True
    keyword: bool = False


def option(*, default: T, check: Check | None = None, grouped: bool = True) -> T:
    """An option of any value, or one with a check of its own."""
    made: Any = Option(default, check, grouped)
    return made


def nonnegative(*, default: float) -> float:
    """A number of at least 0."""
    return option(default=default, check=check_nonnegative)


def decays(*, default: tuple[float, float]) -> tuple[float, float]:
    """Averaging factors in [0, 1)."""
    return option(default=default, check=_check_decays)


def hint(*, default: T) -> T:
    """An option of PyTorch that has no effect here."""
    return option(default=default, grouped=False)


def check_nonnegative(owner: str, name: str, value: float) -> float:
    """Require a number of at least 0.

    Raises:
        OptimizerError: names the option.
    """
    if not value >= 0:
        raise OptimizerError.here(f"{owner}: expected {name} >= 0, got {value}")
    return value


def _check_decays(owner: str, name: str, value: Iterable[float]) -> tuple[float, ...]:
    factors = tuple(value)
    for i, factor in enumerate(factors):
        if not 0 <= factor < 1:
            raise OptimizerError.here(
                f"{owner}: expected {name}[{i}] from 0 to below 1, got {factor}"
            )
    return factors


def taken_options(cls: type[Any]) -> dict[str, Option]:
    """The options in a class's own body, which are taken out of it: its objects have none."""
    taken: dict[str, Option] = {}
    keyword = False
    for name in vars(cls).get("__annotations__", ()):
        value = vars(cls).get(name)
        keyword = keyword or name == "_"
        if isinstance(value, Option):
            taken[name] = value._replace(keyword=keyword)
            delattr(cls, name)
    return taken


def constructor(
    cls: type[Any], options: Mapping[str, Option], make: Callable[..., None]
) -> Callable[..., None]:
    """`__init__(self, params, ...)` of a class, which calls `make(self, params, values)`.

    Args:
        options: by name; those given by keyword come last.
    """
    keyword = {name: o.default for name, o in options.items() if o.keyword}
    others = {name: o.default for name, o in options.items() if not o.keyword}
    parameters = ["self", "params", *others, *(["*"] if keyword else ()), *keyword]
    values = ", ".join([f"{name!r}: {name}" for name in options])
    names = {"Any": Any, "Iterable": Iterable, "make": make}  # annotations use the first two
    call = f"make(self, params, {{{values}}})"
    function = compiled_method(cls, "__init__", parameters, [call], names)
    function.__defaults__, function.__kwdefaults__ = tuple(others.values()), keyword
    hints: dict[str, Any] = {"params": "Iterable[Any]", "return": "None"}
    for base in reversed(cls.__mro__):
        hints |= vars(base).get("__annotations__", {})
    function.__annotations__ = {name: hints[name] for name in ("params", *options, "return")}
    return function
