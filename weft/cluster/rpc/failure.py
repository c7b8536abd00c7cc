"""Errors that travel: the name of their class and their text, raised again at the caller."""

from __future__ import annotations

import builtins
from typing import Final, TypeVar

from weft import errors
from weft.cluster.rpc.message import Message

KIND: Final = "!error"
"""The kind of a message that carries an error."""
E = TypeVar("E", bound=type[Exception])

_BUILTIN: Final = (
    "ArithmeticError", "AssertionError", "AttributeError", "BufferError", "EOFError", "IndexError",
    "KeyError", "LookupError", "MemoryError", "NotImplementedError", "OSError", "OverflowError",
    "RuntimeError", "TimeoutError", "TypeError", "ValueError", "ZeroDivisionError",
)  # fmt: skip
_classes: dict[str, type[Exception]] = {name: getattr(builtins, name) for name in _BUILTIN}


def travels(cls: E) -> E:
    """Register a class of errors whose instances are made from one text; usable as a decorator."""
    _classes[cls.__name__] = cls
    return cls


for _cls in list(vars(errors).values()):
    if isinstance(_cls, type) and issubclass(_cls, errors.WeftError):
        travels(_cls)


def to_message(error: BaseException) -> Message:
    """A message that carries an error: its class, or the nearest above it that is registered."""
    names = [cls.__name__ for cls in type(error).__mro__]
    known = next((name for name in names if name in _classes), "WeftError")
    text = str(error.args[0]) if type(error) is KeyError and error.args else str(error)
    if known == "WeftError" != names[0]:
        text = f"{names[0]}: {text}"
    return Message(KIND, {"class": known, "text": text, "node": getattr(error, "node", None)})


def from_message(message: Message, who: str) -> Exception:
    """The error that a message carries, of the same class if that is registered.

    Args:
        who: the task that sent it; a note of the error names it.
    """
    head = message.head
    name, text = str(head.get("class")), str(head.get("text"))
    cls = _classes.get(name)
    error = errors.WeftError(f"{name}: {text}") if cls is None else cls(text)
    if isinstance(error, errors.WeftError) and isinstance(head.get("node"), str):
        error.node = head["node"]
    error.add_note(f"raised by {who}")
    return error
