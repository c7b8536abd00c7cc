"""TensorFlow's exceptions, as branches of Weft's tree: either name catches them."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
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

    def __init_subclass__(cls, code: int | None = None) -> None:
        super().__init_subclass__()
        cls.error_code = cls.error_code if code is None else code

    def __init__(self, node_def: object, op: Operation | None, message: str) -> None:
        super().__init__(message)
        self.node_def = node_def
        self.op = op
        self.message = message


class CancelledError(OpError, errors.CancelledError, code=CANCELLED):
    """The run was cancelled."""


class UnknownError(OpError, errors.UserOpError, code=UNKNOWN):
    """An unclassified failure, such as a Python exception in a user-defined operation."""


class InvalidArgumentError(OpError, errors.FeedError, code=INVALID_ARGUMENT):
    """An invalid value for an operation: a missing or misshapen feed, shapes that differ."""


class DeadlineExceededError(OpError, errors.DeadlineError, code=DEADLINE_EXCEEDED):
    """A deadline passed."""


class NotFoundError(OpError, errors.GraphError, code=NOT_FOUND):
    """Something that was requested does not exist."""


class AlreadyExistsError(OpError, errors.ExistsError, code=ALREADY_EXISTS):
    """Something that was to be created already exists."""


class PermissionDeniedError(OpError, errors.DeniedError, code=PERMISSION_DENIED):
    """The caller lacks permission."""


class ResourceExhaustedError(OpError, MemoryError, code=RESOURCE_EXHAUSTED):
    """There is not enough memory."""


class FailedPreconditionError(OpError, errors.UninitializedError, code=FAILED_PRECONDITION):
    """The system is not in the state that the operation needs: an uninitialized variable."""


class AbortedError(OpError, errors.AbortedError, code=ABORTED):
    """The operation was aborted."""


class OutOfRangeError(OpError, errors.OutOfRangeError, errors.EndOfDataError, code=OUT_OF_RANGE):
    """An index or a position is past the end."""


class UnimplementedError(OpError, code=UNIMPLEMENTED):
    """The operation is not implemented."""


class InternalError(OpError, errors.CompileError, code=INTERNAL):
    """The compiler refused a kernel."""


class UnavailableError(OpError, errors.UnavailableError, code=UNAVAILABLE):
    """The service is not available."""


class DataLossError(OpError, code=DATA_LOSS):
    """Data is lost or damaged."""


class ClosedSessionError(errors.ClosedError):
    """A session was used after it was closed; a `RuntimeError`, as in TensorFlow."""


class NameError_(errors.GraphError, KeyError):
    """The graph has no such name; a `KeyError`, as in TensorFlow."""

    def __str__(self) -> str:
        return str(self.args[0])


class FinalizedError(errors.GraphError, RuntimeError):
    """An operation was added to a finalized graph; a `RuntimeError`, as in TensorFlow."""


_TRANSLATIONS: tuple[tuple[type[errors.WeftError], type[OpError]], ...] = (
    (errors.EndOfDataError, OutOfRangeError),
    (errors.MissingError, NotFoundError),
    (errors.CancelledError, CancelledError),
    (errors.AbortedError, AbortedError),
    (errors.UnavailableError, UnavailableError),
    (errors.DeadlineError, DeadlineExceededError),
    (errors.SharingError, InvalidArgumentError),
    (errors.ExistsError, AlreadyExistsError),
    (errors.DeniedError, PermissionDeniedError),
    (errors.UninitializedError, FailedPreconditionError),
    (errors.DistributedError, FailedPreconditionError),
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
    cause = error.__cause__
    if isinstance(error, errors.UserOpError) and isinstance(cause, OpError):
        return type(cause)(None, cause.op, str(error))
    if isinstance(error, errors.UserOpError) and isinstance(cause, errors.DistributedError):
        return _both(FailedPreconditionError, type(cause))(None, None, str(error))
    for kind, translation in _TRANSLATIONS:
        if isinstance(error, kind):
            return _both(translation, type(error))(None, None, str(error))
    return error


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Raises TensorFlow's exceptions for errors of the block, or of a function it decorates."""
    try:
        yield
    except errors.WeftError as error:
        found = translate(error)
        if found is error:
            raise
        raise found from error


@functools.cache
def _both(translation: type[OpError], kind: type[errors.WeftError]) -> type[OpError]:
    """A TensorFlow exception class that is also Weft's class of the same error."""
    if issubclass(translation, kind):
        return translation
    return type(translation.__name__, (translation, kind), {"__doc__": translation.__doc__})
