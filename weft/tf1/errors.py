"""TensorFlow's exceptions, as branches of Weft's tree: either name catches them."""

from __future__ import annotations

import functools
from typing import Protocol

from weft import errors
from weft.ops.boundary.state import LinAlgError

OK = 0
CANCELLED = 1
UNKNOWN = 2
INVALID_ARGUMENT = 3
DEADLINE_EXCEEDED = 4
NOT_FOUND = 5
ALREADY_EXISTS = 6
PERMISSION_DENIED = 7
RESOURCE_EXHAUSTED = 8
FAILED_PRECONDITION = 9
ABORTED = 10
OUT_OF_RANGE = 11
UNIMPLEMENTED = 12
INTERNAL = 13
UNAVAILABLE = 14
DATA_LOSS = 15
UNAUTHENTICATED = 16


class Operation(Protocol):
    """The failed operation that an error refers to."""

    @property
    def name(self) -> str:
        """Its unique name in the graph."""
        ...


class OpError(errors.WeftError):
    """An error in a graph's run: `message`, the operation `op` if known, and a code."""

    error_code = UNKNOWN

    def __init__(self, node_def: object, op: Operation | None, message: str) -> None:
        super().__init__(message)
        self.node_def = node_def
        self.op = op
        self.message = message


class CancelledError(OpError):
    """The run was cancelled."""

    error_code = CANCELLED


class UnknownError(OpError, errors.UserOpError):
    """An unclassified failure, such as a Python exception in a user-defined operation."""

    error_code = UNKNOWN


class InvalidArgumentError(OpError, errors.FeedError):
    """An invalid value for an operation: a missing or misshapen feed, shapes that differ."""

    error_code = INVALID_ARGUMENT


class DeadlineExceededError(OpError):
    """A deadline passed."""

    error_code = DEADLINE_EXCEEDED


class NotFoundError(OpError, errors.GraphError):
    """Something that was requested does not exist."""

    error_code = NOT_FOUND


class AlreadyExistsError(OpError):
    """Something that was to be created already exists."""

    error_code = ALREADY_EXISTS


class PermissionDeniedError(OpError):
    """The caller lacks permission."""

    error_code = PERMISSION_DENIED


class ResourceExhaustedError(OpError, MemoryError):
    """There is not enough memory."""

    error_code = RESOURCE_EXHAUSTED


class FailedPreconditionError(OpError, errors.UninitializedError):
    """The system is not in the state that the operation needs: an uninitialized variable."""

    error_code = FAILED_PRECONDITION


class AbortedError(OpError):
    """The operation was aborted."""

    error_code = ABORTED


class OutOfRangeError(OpError, errors.OutOfRangeError):
    """An index or a position is past the end."""

    error_code = OUT_OF_RANGE


class UnimplementedError(OpError):
    """The operation is not implemented."""

    error_code = UNIMPLEMENTED


class InternalError(OpError, errors.CompileError):
    """The compiler refused a kernel."""

    error_code = INTERNAL


class UnavailableError(OpError):
    """The service is not available."""

    error_code = UNAVAILABLE


class DataLossError(OpError):
    """Data is lost or damaged."""

    error_code = DATA_LOSS


class ClosedSessionError(errors.ClosedError):
    """A session was used after it was closed; a `RuntimeError`, as in TensorFlow."""


class NameError_(errors.GraphError, KeyError):
    """The graph has no such name; a `KeyError`, as in TensorFlow."""

    def __str__(self) -> str:
        return str(self.args[0])


class FinalizedError(errors.GraphError, RuntimeError):
    """An operation was added to a finalized graph; a `RuntimeError`, as in TensorFlow."""


_TRANSLATIONS: tuple[tuple[type[errors.WeftError], type[OpError]], ...] = (
    (errors.UninitializedError, FailedPreconditionError),
    (LinAlgError, InvalidArgumentError),
    (errors.OutOfMemoryError, ResourceExhaustedError),
    (errors.UserOpError, UnknownError),
    (errors.OutOfRangeError, InvalidArgumentError),
    (errors.CompileError, InternalError),
    (errors.FeedError, InvalidArgumentError),
    (errors.ShapeError, InvalidArgumentError),
    (errors.DTypeError, InvalidArgumentError),
    (errors.GraphError, InvalidArgumentError),
    (errors.ArgumentError, InvalidArgumentError),
    (errors.TreeError, InvalidArgumentError),
)


def translate(error: errors.WeftError) -> errors.WeftError:
    """The TensorFlow exception for an error of a run; other exceptions are unchanged."""
    if isinstance(error, OpError):
        return error
    for kind, translation in _TRANSLATIONS:
        if isinstance(error, kind):
            return _both(translation, type(error))(None, None, str(error))
    return error


@functools.cache
def _both(translation: type[OpError], kind: type[errors.WeftError]) -> type[OpError]:
    """A TensorFlow exception class that is also Weft's class of the same error."""
    if issubclass(translation, kind):
        return translation
    return type(translation.__name__, (translation, kind), {"__doc__": translation.__doc__})
