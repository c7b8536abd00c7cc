"""`tf.flags` (also `tf.app.flags`): the command line of a program as attributes of `FLAGS`.

    tf.flags.DEFINE_integer("steps", 100, "Training steps.")
    FLAGS = tf.flags.FLAGS
    print(FLAGS.steps)  # 20 after: python train.py --steps=20

The command line is read when a flag is first asked for, or by `tf.app.run`. `--name=value`,
`--name value`, `-name` and, of booleans, `--name` and `--noname` are understood; what follows `--`,
and what is no flag, is left to the program. `--help` prints the flags.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from weft.errors import ArgumentError, KindError

YES: Final = ("true", "t", "1", "yes", "y")
HELP: Final = ("help", "helpfull", "h")
NO: Final = ("false", "f", "0", "no", "n")


class IllegalFlagValueError(ArgumentError):
    """A value that its flag does not take."""


class UnrecognizedFlagError(KindError):
    """A flag that was not defined."""


class DuplicateFlagError(ArgumentError):
    """A flag that is defined a second time."""


@dataclass
class Flag:
    """One flag: its value now, and how text becomes a value."""

    name: str
    default: Any
    help: str
    parse: Callable[[Any], Any]
    boolean: bool = False
    multiple: bool = False
    value: Any = None
    present: bool = False  # whether the command line or the program has set it
    checks: list[tuple[Callable[[Any], Any], str]] = field(
        default_factory=list[tuple[Callable[[Any], Any], str]]
    )

    def __post_init__(self) -> None:
        self.value = self.default = self.parsed(self.default)

    def parsed(self, value: Any) -> Any:
        """A value of the flag's type.

        Raises:
            IllegalFlagValueError: there is none.
        """
        if value is None:
            return None
        try:
            return self.parse(value)
        except (TypeError, ValueError) as error:
            text = f"flag --{self.name}={value}: {error}"
            raise IllegalFlagValueError(text) from error

    def give(self, value: Any) -> None:
        """Take a value from the command line; one more, if the flag may be given many times."""
        new = self.parsed([value] if self.multiple else value)
        self.value = [*self.value, *new] if self.multiple and self.present else new
        self.present = True


class FlagValues:
    """The flags of a program, each an attribute."""

    def __init__(self) -> None:
        self.__dict__["_defined"] = {}
        self.__dict__["_parsed"] = False

    def __call__(self, argv: Sequence[str] | None = None, known_only: bool = False) -> list[str]:
        """Read a command line; what is left of it, with the program's name first.

        Args:
            argv: the name of the program, and its arguments; those of the process by default.
            known_only: leave flags that were not defined, too.

        Raises:
            UnrecognizedFlagError: a flag was not defined, unless `known_only`.
            IllegalFlagValueError: a value does not fit its flag, or a required one is missing.
        """
        given = list(sys.argv if argv is None else argv)
        left, rest = given[:1], given[1:]
        while rest:
            item = rest.pop(0)
            if item == "--":
                left += rest
                break
            if not item.startswith("-") or item == "-" or _is_number(item):
                left.append(item)
                continue
            name, equals, text = item.lstrip("-").partition("=")
            if name in HELP and name not in self._defined:
                self._show_help()
            flag = self._defined.get(name)
            if flag is None and not equals:
                flag, equals, text = self._negated(name), "=", "false"
            if flag is None:
                if not known_only:
                    text = f"no flag --{name} is defined; there are {', '.join(self._defined)}"
                    raise UnrecognizedFlagError(text)
                left.append(item)
                continue
            if not equals and not flag.boolean:
                if not rest:
                    raise IllegalFlagValueError(f"flag --{name}: expected a value behind it")
                text = rest.pop(0)
            flag.give(text if equals or not flag.boolean else True)
        self.__dict__["_parsed"] = True
        self._validate()
        return left

    def _show_help(self) -> NoReturn:
        print(self.get_help())
        sys.exit(0)

    def _negated(self, name: str) -> Flag | None:
        """The boolean flag that `--noname` clears."""
        flag = self._defined.get(name[2:]) if name.startswith("no") else None
        return flag if flag is not None and flag.boolean else None

    def _validate(self) -> None:
        for flag in self._defined.values():
            for check, message in flag.checks:
                if not check(flag.value):
                    raise IllegalFlagValueError(f"flag --{flag.name}={flag.value}: {message}")

    def _parse_flags(self) -> None:
        """Read the command line of the process: what programs for TensorFlow below 1.5 call."""
        self(known_only=True)

    def is_parsed(self) -> bool:
        """Whether a command line was read."""
        return self._parsed

    def mark_as_parsed(self) -> None:
        """Have the flags keep their defaults: no command line is read."""
        self.__dict__["_parsed"] = True

    def __getattr__(self, name: str) -> Any:
        # programs write FLAGS.__flags, in a class also FLAGS._Class__flags
        if name.endswith("__flags"):
            return self._defined
        if not self._parsed and name in self._defined:
            self(known_only=True)
        return self[name].value

    def __setattr__(self, name: str, value: Any) -> None:
        flag = self[name]
        flag.value, flag.present = flag.parsed(value), True

    def __delattr__(self, name: str) -> None:
        del self._defined[self[name].name]

    def __getitem__(self, name: str) -> Flag:
        try:
            return self._defined[name]
        except KeyError:
            raise UnrecognizedFlagError(f"no flag {name!r} is defined") from None

    def __contains__(self, name: object) -> bool:
        return name in self._defined

    def __iter__(self) -> Iterator[str]:
        return iter(self._defined)

    def __len__(self) -> int:
        return len(self._defined)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._defined]

    def flag_values_dict(self) -> dict[str, Any]:
        """Values by name."""
        return {name: getattr(self, name) for name in self._defined}

    def set_default(self, name: str, value: Any) -> None:
        """Change the default of a flag, and its value unless one was given."""
        flag = self[name]
        flag.default = flag.parsed(value)
        if not flag.present:
            flag.value = flag.default

    def unparse_flags(self) -> None:
        """Go back to before the command line was read."""
        for flag in self._defined.values():
            flag.value, flag.present = flag.default, False
        self.__dict__["_parsed"] = False

    def get_help(self) -> str:
        """A line for each flag, with its default."""
        rows = [
            f"  --{'[no]' if f.boolean else ''}{f.name}: {f.help} (default: {f.default})"
            for f in self._defined.values()
        ]
        return "\n".join([f"flags of {sys.argv[0]}:", *rows])


FLAGS: Final = FlagValues()


def _define(
    name: str, default: Any, help: str | None, flag_values: FlagValues | None,
    parse: Callable[[Any], Any], boolean: bool = False, multiple: bool = False,
) -> None:  # fmt: skip
    values = FLAGS if flag_values is None else flag_values
    if name in values:
        raise DuplicateFlagError(f"flag {name!r} is defined already")
    values._defined[name] = Flag(name, default, help or "", parse, boolean, multiple)  # pyright: ignore[reportPrivateUsage]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _boolean(value: Any) -> bool:
    if isinstance(value, str):
        if value.lower() in YES:
            return True
        if value.lower() in NO:
            return False
        raise ValueError("expected true or false")
    if value in (0, 1):
        return bool(value)
    raise TypeError("expected true or false")


def _integer(value: Any) -> int:
    return (
        int(value, 0) if isinstance(value, str) and value.lower().startswith("0x") else int(value)
    )


def _items(value: Any) -> list[str]:
    if isinstance(value, str):
        return [v.strip() for v in value.split(",")] if value else []
    return list(value)


def _within(
    kind: Callable[[Any], Any], lower: float | None, upper: float | None
) -> Callable[[Any], Any]:
    def parse(value: Any) -> Any:
        number = kind(value)
        if (lower is not None and number < lower) or (upper is not None and number > upper):
            raise ValueError(f"expected a number from {lower} to {upper}")
        return number

    return parse


def _each(kind: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: [kind(v) for v in ([value] if isinstance(value, str) else list(value))]


def DEFINE_string(
    name: str, default: Any, help: str | None = None, flag_values: FlagValues | None = None
) -> None:
    """A flag whose value is text."""
    _define(name, default, help, flag_values, str)


def DEFINE_integer(
    name: str, default: Any, help: str | None = None, lower_bound: int | None = None,
    upper_bound: int | None = None, flag_values: FlagValues | None = None,
) -> None:  # fmt: skip
    """A flag whose value is an integer within bounds."""
    _define(name, default, help, flag_values, _within(_integer, lower_bound, upper_bound))


def DEFINE_float(
    name: str, default: Any, help: str | None = None, lower_bound: float | None = None,
    upper_bound: float | None = None, flag_values: FlagValues | None = None,
) -> None:  # fmt: skip
    """A flag whose value is a floating-point number within bounds."""
    _define(name, default, help, flag_values, _within(float, lower_bound, upper_bound))


def DEFINE_boolean(
    name: str, default: Any, help: str | None = None, flag_values: FlagValues | None = None
) -> None:
    """A flag that is set by `--name` and cleared by `--noname`."""
    _define(name, default, help, flag_values, _boolean, boolean=True)


DEFINE_bool = DEFINE_boolean


def DEFINE_list(
    name: str, default: Any, help: str | None = None, flag_values: FlagValues | None = None
) -> None:
    """A flag whose value is a list of texts, with commas between them."""
    _define(name, default, help, flag_values, _items)


def DEFINE_enum(
    name: str, default: Any, enum_values: Sequence[str], help: str | None = None,
    flag_values: FlagValues | None = None,
) -> None:  # fmt: skip
    """A flag whose value is one of `enum_values`."""

    def parse(value: Any) -> str:
        if value not in enum_values:
            raise ValueError(f"expected one of {', '.join(enum_values)}")
        return value

    _define(name, default, help, flag_values, parse)


def DEFINE_multi_string(
    name: str, default: Any, help: str | None = None, flag_values: FlagValues | None = None
) -> None:
    """A flag that may be given many times: a list of texts."""
    _define(name, default, help, flag_values, _each(str), multiple=True)


def DEFINE_multi_integer(
    name: str, default: Any, help: str | None = None, lower_bound: int | None = None,
    upper_bound: int | None = None, flag_values: FlagValues | None = None,
) -> None:  # fmt: skip
    """A flag that may be given many times: a list of integers."""
    kind = _each(_within(_integer, lower_bound, upper_bound))
    _define(name, default, help, flag_values, kind, multiple=True)


def register_validator(
    flag_name: str,
    checker: Callable[[Any], Any],
    message: str = "the check of this flag failed",
    flag_values: FlagValues | None = None,
) -> None:
    """Have `checker(value)` looked at when the command line is read: false refuses it."""
    (FLAGS if flag_values is None else flag_values)[flag_name].checks.append((checker, message))


def mark_flag_as_required(flag_name: str, flag_values: FlagValues | None = None) -> None:
    """Refuse a command line without this flag."""
    register_validator(flag_name, lambda v: v is not None, "a value is required", flag_values)


def mark_flags_as_required(
    flag_names: Sequence[str], flag_values: FlagValues | None = None
) -> None:
    """Refuse a command line without one of these flags."""
    for name in flag_names:
        mark_flag_as_required(name, flag_values)
