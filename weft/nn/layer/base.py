"""`layer`: classes that store arguments and call a function, derived from the function."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, ClassVar, Final, TypeVar, dataclass_transform

from weft.documentation import with_arguments
from weft.host.compiled_method import compiled_method
from weft.nn.module.module import Module
from weft.ops.refusal import guard_making

C = TypeVar("C", bound=type[Any])
_REQUIRED: Final = inspect.Parameter.empty
_INIT_VAR: Final = re.compile(r"InitVar\[(.*)\]")


class Layer(Module):
    """Base class of the classes that `options` and `layer` complete.

    Args:
        device: only the CPU.
        dtype: the parameters' element type, by default `weft.get_default_dtype()`.
    """

    _fields: ClassVar[dict[str, Field]] = {}
    _shown: ClassVar[str | None] = None
    """The printed options, by default all.

    `"size, eps=, mode=zeros"` prints `2, eps=0.1`, and a mode other than `zeros` as `mode=reflect`.
    """
    spatial: ClassVar[int]
    _text: ClassVar[str | None] = None
    """The docstring as it is written."""

    def __init_subclass__(cls, *, spatial: int | None = None, **options: Any) -> None:
        """`class Conv2d(_Conv, spatial=2)` sets the number of spatial dimensions."""
        super().__init_subclass__(**options)
        if spatial is not None:
            cls.spatial = spatial
        cls._text = cls.__doc__
        if cls.__module__.startswith("weft."):
            _document(cls)

    def extra_repr(self) -> str:
        """The options."""
        shown = self._shown
        if shown is None:
            names = [name for name, field in self._fields.items() if field.stored]
            shown = ", ".join([f"{n}=False" if n == "inplace" else f"{n}=" for n in names])
        return ", ".join(filter(None, map(self._option, shown.split(", "))))

    def _option(self, entry: str) -> str:
        """The printed form of one option."""
        name, equals, usual = entry.partition("=")
        value = getattr(self, name) if name else ""
        if name == "bias" and not isinstance(value, bool):
            value = value is not None
        if usual and {str(x) for x in (value if isinstance(value, tuple) else (value,))} == {usual}:
            return ""
        text = repr(value) if isinstance(value, str) and name and not usual else f"{value}"
        return f"{name}={text}" if equals else text


class Field:
    """An argument of a layer's constructor, usually also an attribute."""

    def __init__(self, type: str, default: Any) -> None:
        init_only = _INIT_VAR.fullmatch(type)
        self.type = init_only[1] if init_only else type
        self.stored = init_only is None
        self.is_buffer = isinstance(default, _Buffer)
        self.default = default.default if isinstance(default, _Buffer) else default


class _Buffer:
    def __init__(self, default: Any) -> None:
        self.default = default


def buffer(*, default: Any) -> Any:
    """A field whose value is registered as a buffer.

    Args:
        default: the argument's default.
    """
    return _Buffer(default)


@dataclass_transform(eq_default=False, field_specifiers=(buffer,))
def options(cls: C) -> C:
    """A decorator that adds the constructor to a class derived from `Layer`.

    The annotated attributes become its arguments, after those of the base classes. Those declared
    as `InitVar` are not stored, but passed to `__post_init__`, which checks and converts arguments.
    Arguments that the docstring does not describe are described as by the base classes.

    Args:
        cls: the class.
    """
    _complete(cls, None, False)
    return cls


@dataclass_transform(eq_default=False, field_specifiers=(buffer,))
def layer(function: Callable[..., Any], *, kw_only: bool = False) -> Callable[[C], C]:
    """A decorator like `options`, for a class that calls a function.

    `forward` passes the attributes to the parameters of the same name; its own arguments are the
    function's other parameters without default. The function also describes the arguments.

    Args:
        function: what `forward` calls; classes that define `forward` only take its documentation.
        kw_only: whether the constructor takes all arguments by name only.

    >>> def scaled(input, factor):
    ...     return factor * input
    >>> @layer(scaled)
    ... class Scale(Layer):
    ...     factor: float = 2.0
    >>> Scale(3.0), Scale()(1.0)
    (Scale(factor=3.0), 2.0)
    """

    def complete(cls: C) -> C:
        _complete(cls, function, kw_only)
        return cls

    return complete


def _complete(cls: type[Any], function: Callable[..., Any] | None, kw_only: bool) -> None:
    declared = {
        name: Field(type, vars(cls).get(name, _REQUIRED))
        for name, type in inspect.get_annotations(cls).items()
        if not type.startswith("ClassVar")
    }
    for name in declared.keys() & vars(cls).keys():
        delattr(cls, name)
    fields = cls._fields = {**cls._fields, **declared}
    cls.__init__ = _constructor(cls, fields, kw_only)
    guard_making(cls)
    if function is not None and cls.forward is Module.forward:
        cls.forward = _forward(cls, function, fields)
    _document(cls, function)


def _constructor(cls: type[Any], fields: dict[str, Field], kw_only: bool) -> Any:
    """`__init__`, which stores the arguments and calls `__post_init__`."""
    lines = ["super(Layer, self).__init__()"]
    for name, field in fields.items():
        if field.is_buffer:
            lines.append(f"self.register_buffer({name!r}, {name})")
        elif field.stored:
            lines.append(f"self.{name} = {name}")
    if hasattr(cls, "__post_init__"):
        rest = [name for name, field in fields.items() if not field.stored]
        lines.append(f"self.__post_init__({', '.join(rest)})")
    head = ["self", *(["*"] if kw_only else []), *fields]
    made = compiled_method(cls, "__init__", head, lines, {"Layer": Layer})
    defaults = {n: field.default for n, field in fields.items() if field.default is not _REQUIRED}
    if kw_only:
        made.__kwdefaults__ = defaults
    else:
        made.__defaults__ = tuple(defaults.values())
    made.__annotations__ = {**{n: field.type for n, field in fields.items()}, "return": "None"}
    return made


def _forward(cls: type[Any], function: Callable[..., Any], fields: dict[str, Field]) -> Any:
    """`forward`, which calls the function with its arguments and the attributes."""
    inputs: list[str] = []
    passed: list[str] = []
    by_name = False  # arguments after one that is left out
    for name, parameter in inspect.signature(function).parameters.items():
        by_name = by_name or parameter.kind is parameter.KEYWORD_ONLY
        if name == "training" or (name in fields and fields[name].stored):
            passed.append(f"{name}=self.{name}" if by_name else f"self.{name}")
        elif parameter.default is _REQUIRED:
            inputs.append(name)
            passed.append(name)
        else:
            by_name = True
    call = f"return function({', '.join(passed)})"
    made = compiled_method(cls, "forward", ["self", *inputs], [call], {"function": function})
    made.__annotations__ = dict.fromkeys([*inputs, "return"], "Any")
    made.__doc__ = with_arguments(cls.__doc__, inputs, function)
    return made


def _document(cls: type[Any], *sources: Any) -> None:
    """Describe the constructor's arguments as the sources do, then as the base classes do."""
    names = inspect.signature(cls.__init__).parameters
    cls.__doc__ = with_arguments(cls._text, names, *sources, *cls.__mro__[1:])
