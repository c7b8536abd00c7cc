"""The exception tree: every error Weft raises on purpose derives from `WeftError`.

Each class also derives from the built-in exception that a NumPy or PyTorch user would expect, so
`except ValueError` keeps working. Messages have: operation, expectation, actual value, the user's
line. NumPy's own is defined where it is raised (`weft.ops.boundary.state.LinAlgError`): compiler
processes import this module and do without NumPy.
"""

from __future__ import annotations

import contextlib
import os
import sys
from types import CodeType, FrameType
from typing import Final, Self, TypeVar

E = TypeVar("E", bound="WeftError")


PACKAGE: Final = os.path.dirname(os.path.realpath(__file__)) + "/"
NOT_THE_USER: Final = (PACKAGE, contextlib.__file__)


class Source:
    """A line of the user's program; from the call stack, it is resolved only on request."""

    __slots__ = ("_code", "_line", "file")

    def __init__(self, file: str, line: int, code: CodeType | None = None) -> None:
        """With `code`, `line` is the offset of the instruction, as in `f_lasti`."""
        self.file: Final = file
        self._line = line
        self._code = code

    @property
    def line(self) -> int:
        """The line number."""
        if self._code is not None:
            self._line, self._code = _line_of(self._code, self._line), None
        return self._line

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Source) and (self.file, self.line) == (other.file, other.line)

    def __hash__(self) -> int:
        return hash((self.file, self.line))

    def __str__(self) -> str:
        return f"{self.file.rsplit('/', 1)[-1]}:{self.line}"

    def __repr__(self) -> str:
        return f"Source({self.file!r}, {self.line})"


def _line_of(code: CodeType, offset: int) -> int:
    for start, end, line in code.co_lines():
        if start <= offset < end and line is not None:
            return line
    return code.co_firstlineno


_outside: dict[str, bool] = {}  # file name -> whether it is the user's; as many as files that ran


GENERATED: Final = "<string>"
"""The file of generated code, such as the constructor of a dataclass; also of `python -c`."""


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).startswith("weft.")


def user_source() -> Source | None:
    """The innermost line on the call stack outside the package (and `contextlib`)."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        code = frame.f_code
        file = code.co_filename
        outside = _outside.get(file)
        if outside is None:
            outside = _outside[file] = not file.startswith(NOT_THE_USER)
        if outside and not (file == GENERATED and _is_ours(frame)):
            return Source(file, frame.f_lasti, code)
        frame = frame.f_back
    return None


PLACE: Final = " (created at "  # starts the suffix of messages


def at_user_line() -> str:
    """` (created at train.py:31)`, the running line outside the package, for messages."""
    source = user_source()
    return "" if source is None else f"{PLACE}{source})"


class WeftError(Exception):
    """Base class of all errors raised by Weft.

    Attributes:
        node: the name of the failed node, if any.
        serial: the number of the failed recorded call, if any.
        nameless: whether the message lacks the operation; the function that the user called
            prepends its name.
    """

    node: str | None = None
    serial: int | None = None
    nameless: bool = False

    @classmethod
    def here(cls, message: str) -> Self:
        """An error whose message names the running line of the user's program."""
        return cls(message + at_user_line())

    def entitle(self, name: str, line: str) -> None:
        """Prepends an operation to a nameless message, and appends the user's line."""
        text = str(self)
        self.args = (f"{name}: {text}{'' if text.endswith(line) else line}",)
        self.nameless = False


def nameless(error: E) -> E:
    """An error of code that many operations share, whose message does not know the operation."""
    error.nameless = True
    return error


class ConfigError(WeftError, ValueError):
    """An unknown knob, or a value that the knob does not accept."""


class ShapeError(WeftError, ValueError, RuntimeError):
    """Shapes that do not fit the operation."""


class UnknownShapeError(ShapeError):
    """A shape that is needed is not known yet."""


class ArgumentError(WeftError, ValueError, RuntimeError):
    """An argument that the operation does not accept."""


class AliasError(WeftError, ValueError, RuntimeError):
    """Memory that cannot be shared."""


class LendingError(AliasError, BufferError):
    """Memory that cannot be lent to another library."""


class DTypeError(WeftError, TypeError, RuntimeError):
    """Element types that do not fit the operation."""


class KindError(DTypeError, AttributeError):
    """An argument of a type that lacks a required attribute."""


class UnknownKeyError(ArgumentError, KeyError):
    """An unknown key or name."""

    __str__ = BaseException.__str__  # KeyError's puts the message in quotes


class TooLargeError(ArgumentError, OverflowError):
    """A number that is too large for its purpose."""


class SubscriptError(DTypeError, IndexError):
    """An invalid subscript."""


class GraphError(WeftError, ValueError, RuntimeError):
    """A malformed graph: a cycle, a foreign tensor, an unknown name."""


class MissingError(GraphError):
    """Something that a run needs does not exist, such as a file."""


class FeedError(WeftError, ValueError):
    """A feed that is missing, of the wrong shape or type, or not feedable."""


class UninitializedError(WeftError, RuntimeError):
    """A variable was read before it was assigned."""


class OutOfRangeError(WeftError, IndexError, ValueError, RuntimeError):
    """An index outside the dimension that it indexes, or a number outside its range."""


class DivisionError(WeftError, ZeroDivisionError, RuntimeError):
    """Integer division by zero."""


class ClosedError(WeftError, RuntimeError):
    """A session was used after it was closed."""


class UserOpError(WeftError, RuntimeError):
    """A Python exception inside a user-written operation; the original is its `__cause__`."""


class NotDifferentiableError(WeftError, TypeError, RuntimeError):
    """A gradient was requested through an operation that has none."""


class GradientError(WeftError, RuntimeError):
    """An impossible backward pass: nothing to differentiate, or its graph is freed."""


class TracerError(WeftError, TypeError, RuntimeError):
    """The value of a traced function's argument was requested, which is only a placeholder."""


class UndefinedRuleError(GradientError, NotImplementedError):
    """A user-defined function lacks its forward or backward function, or its tangents."""


class UndefinedMethodError(WeftError, NotImplementedError):
    """A subclass that lacks a method which another of its methods needs."""


class TreeError(WeftError, ValueError, RuntimeError):
    """Nested structures that do not match."""


class OptimizerError(WeftError, ValueError):
    """An invalid optimizer option, or parameters that it cannot change."""


class StateError(WeftError, RuntimeError):
    """A state dict whose keys or shapes do not match the module that loads it."""


class CompileError(WeftError, RuntimeError):
    """The code generator or LLVM rejected a kernel; the process continues."""


class NoCompilerError(CompileError):
    """No compiler process is available; front ends interpret programs then."""


class OutOfMemoryError(WeftError, MemoryError, RuntimeError):
    """The memory that a program needs is not available."""


class MismatchError(WeftError, AssertionError):
    """A compiled result differs from the reference (`WEFT_REFERENCE=1`) or a gradient is wrong."""


class GradcheckError(MismatchError, RuntimeError):
    """`gradcheck` found a wrong derivative."""


class DataError(WeftError, ValueError):
    """A data file that is missing, damaged or of another format."""


class NewerFormatError(DataError):
    """A data file that a later version of Weft wrote."""


class CheckpointError(WeftError, RuntimeError):
    """A checkpoint that cannot be written, or does not match the objects to restore."""


class FileError(WeftError, OSError):
    """A path that is not a regular file: a folder, a device, a pipe."""


class WorkerError(WeftError, RuntimeError):
    """A worker process that died, or did not answer in time."""


class DistributedError(WeftError, RuntimeError):
    """A collective failed: a process failed, left or disagrees, or there is no MPI.

    See `weft.distributed`.
    """


class RanksDifferError(DistributedError, ShapeError):
    """Ranks have tensors that do not fit each other."""


class DistributedTimeoutError(DistributedError, TimeoutError):
    """Another process did not answer in time."""


class EndOfDataError(WeftError):
    """A queue is closed and has too few elements, or a source has no more."""


class CancelledError(WeftError, RuntimeError):
    """A call was cancelled while it waited: its queue or its session was closed."""


class AbortedError(WeftError, RuntimeError):
    """A step was given up because another part of it failed, or its server has restarted."""


class UnavailableError(WeftError, RuntimeError):
    """A task that does not answer, or has ended; the message names it."""


class DeadlineError(WeftError, TimeoutError):
    """A wait was longer than its limit; the message says for what."""


class ExistsError(WeftError, ValueError):
    """Something that exists already, with other properties."""


class SharingError(ExistsError, ArgumentError):
    """A queue or table of a shared name that was made with other properties."""


class DeniedError(WeftError, PermissionError):
    """A peer without the token that a server demands."""
