"""The exception tree: every error Weft raises on purpose derives from `WeftError`.

Each class also derives from the built-in exception that a NumPy or PyTorch user would expect, so
`except ValueError` keeps working. Messages say: operation, expectation, actual, the user's line.
NumPy's own is where it is raised (`weft.ops.boundary.state.LinAlgError`): compiler processes, which
know these here, do without NumPy.
"""

from __future__ import annotations

from typing import TypeVar

E = TypeVar("E", bound="WeftError")


class WeftError(Exception):
    """Base class of all errors raised by Weft.

    Attributes:
        node: the name of the node that failed, where one did.
        serial: the number of the recorded call that failed, where one did.
        nameless: whether the message lacks the operation, for the function that the user called to
            put its name in front.
    """

    node: str | None = None
    serial: int | None = None
    nameless: bool = False

    def entitle(self, name: str, line: str) -> None:
        """Put an operation in front of a nameless message, and the user's line behind it."""
        text = str(self)
        self.args = (f"{name}: {text}{'' if text.endswith(line) else line}",)
        self.nameless = False


def nameless(error: E) -> E:
    """An error of what many operations share: its message does not know in which of them it is."""
    error.nameless = True
    return error


class ConfigError(WeftError, ValueError):
    """An unknown knob or a value that the knob does not take."""


class ShapeError(WeftError, ValueError, RuntimeError):
    """Shapes that do not fit the operation."""


class UnknownShapeError(ShapeError):
    """A shape is needed that is not known yet."""


class ArgumentError(WeftError, ValueError, RuntimeError):
    """An argument that is none of those that the operation takes."""


class AliasError(WeftError, ValueError, RuntimeError):
    """Memory that cannot be shared."""


class LendingError(AliasError, BufferError):
    """Memory that cannot be lent to another library."""


class DTypeError(WeftError, TypeError, RuntimeError):
    """Element types that do not fit the operation."""


class KindError(DTypeError, AttributeError):
    """An argument of a kind that lacks what the operation looks for in it."""


class UnknownKeyError(ArgumentError, KeyError):
    """A key or a name that is none of those there are."""

    __str__ = BaseException.__str__  # KeyError's puts the message between quotes


class TooLargeError(ArgumentError, OverflowError):
    """A number that is too large for what it is to be."""


class SubscriptError(DTypeError, IndexError):
    """Something between brackets that is no subscript."""


class GraphError(WeftError, ValueError, RuntimeError):
    """A malformed graph: a cycle, a foreign tensor, an unknown name."""


class FeedError(WeftError, ValueError):
    """A feed that is missing, of the wrong shape or type, or not feedable."""


class UninitializedError(WeftError, RuntimeError):
    """A variable was read before it was assigned."""


class OutOfRangeError(WeftError, IndexError, RuntimeError):
    """An index outside the dimension that it indexes."""


class DivisionError(WeftError, ZeroDivisionError, RuntimeError):
    """Whole numbers are divided by 0."""


class ClosedError(WeftError, RuntimeError):
    """A session was used after it was closed."""


class UserOpError(WeftError, RuntimeError):
    """A Python exception inside a user-written operation; the original is its `__cause__`."""


class NotDifferentiableError(WeftError, TypeError, RuntimeError):
    """A gradient was asked through an operation that has none."""


class GradientError(WeftError, RuntimeError):
    """A backward pass that cannot be: nothing to differentiate, or its graph is gone."""


class TracerError(WeftError, TypeError, RuntimeError):
    """A value was looked at that a traced function's argument only stands for."""


class UndefinedRuleError(GradientError, NotImplementedError):
    """A function of the user's own that lacks its forward or backward function, or its tangents."""


class TreeError(WeftError, ValueError, RuntimeError):
    """Nested structures that do not match."""


class OptimizerError(WeftError, ValueError):
    """An optimiser's option that makes no sense, or parameters that it cannot change."""


class StateError(WeftError, RuntimeError):
    """A state dict whose keys or shapes are not those of the module that is to load it."""


class CompileError(WeftError, RuntimeError):
    """The code generator or LLVM refused a kernel; the process goes on."""


class NoCompilerError(CompileError):
    """No compiler process can be had; front ends interpret programs then."""


class OutOfMemoryError(WeftError, MemoryError, RuntimeError):
    """The memory that a program needs cannot be had."""


class MismatchError(WeftError, AssertionError):
    """A compiled result differs from the reference (`WEFT_REFERENCE=1`) or a gradient is wrong."""


class GradcheckError(MismatchError, RuntimeError):
    """A derivative that `gradcheck` has found wrong."""


class DataError(WeftError, ValueError):
    """A data file that is missing, damaged or of another format."""


class NewerFormatError(DataError):
    """A data file that a later version of Weft wrote."""


class CheckpointError(WeftError, RuntimeError):
    """A checkpoint that cannot be written, or does not belong to what is to be restored."""


class FileError(WeftError, OSError):
    """A path that is no file: a folder, a device, a pipe."""


class WorkerError(WeftError, RuntimeError):
    """A worker process that died, or that gave no result in time."""


class DistributedError(WeftError, RuntimeError):
    """What processes do together cannot be done: one failed, left or disagrees, or there is no MPI.

    See `weft.distributed`.
    """


class DistributedTimeoutError(DistributedError, TimeoutError):
    """Another process has not answered in time."""
