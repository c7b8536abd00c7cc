"""`CheckpointException`: the errors of all ranks, the same on all of them."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from weft.collectives.elements import compute_pending
from weft.errors import CheckpointError
from weft.transport import collective
from weft.transport.group import Group

T = TypeVar("T")
Failure = tuple[BaseException, traceback.StackSummary]


class CheckpointException(CheckpointError):
    """A checkpoint that ranks could not save or load; all of them raise it.

    Args:
        msg: what failed.
        failures: the exceptions by rank, with the places that raised them. Those of other ranks are
            `CheckpointError`s with the same text.

    Example:
        >>> import weft.distributed.checkpoint as dcp
        >>> try:
        ...     dcp.load({"step": 0}, checkpoint_id="/nowhere")
        ... except dcp.CheckpointException as error:
        ...     print(list(error.failures), error)
        [0] load: expected a folder with a checkpoint, got /nowhere, which does not exist
    """

    def __init__(self, msg: str, failures: Mapping[int, Failure]) -> None:
        self._failures = dict(failures)
        super().__init__(msg)

    @property
    def failures(self) -> dict[int, Failure]:
        """The exceptions by rank, each with the place that raised it."""
        return self._failures


def together(
    group: Group | None, name: str, work: Callable[[], T], tell: Callable[[T], Any] = lambda _: None
) -> tuple[T, list[Any]]:
    """Do some work on all ranks; if it fails on any, all raise.

    Args:
        group: the ranks; `None` for this process alone.
        name: the caller, for error messages.
        work: what each rank does.
        tell: what to send to other ranks about a result, as JSON.

    Returns:
        The result on this rank, and what each rank sent.

    Raises:
        CheckpointException: it failed on a rank.
    """
    result, told, error = None, None, None
    try:
        result = work()
        told = tell(result)
    except Exception as failure:
        error = failure
    own = {"error": _told(error), "told": told}
    every: list[Any] = [own]
    if group is not None:
        compute_pending()
        data = json.dumps(own).encode()
        every = [json.loads(d) for d in collective.all_gather_bytes(group, data, f"{name}: ranks")]
    failures = {rank: one["error"] for rank, one in enumerate(every) if one["error"]}
    if failures:
        index = 0 if group is None else group.index
        raise CheckpointException(
            _text(failures, len(every)),
            {rank: _failure(told, error if rank == index else None)
             for rank, told in failures.items()},
        ) from error  # fmt: skip
    return result, [one["told"] for one in every]  # type: ignore[return-value]


def _told(error: Exception | None) -> Any:
    """The text of an error and the place that raised it."""
    if error is None:
        return None
    frames = traceback.extract_tb(error.__traceback__)
    return [str(error) or type(error).__name__, [[f.filename, f.lineno, f.name] for f in frames]]


def _failure(told: Any, error: Exception | None) -> Failure:
    text, frames = told
    stack = traceback.StackSummary.from_list([(*frame, None) for frame in frames])
    return error or CheckpointError(text), stack


def _text(failures: Mapping[int, Any], ranks: int) -> str:
    """The distinct errors, each with its ranks unless all had it."""
    by_text: dict[str, list[int]] = {}
    for rank, (text, _) in failures.items():
        by_text.setdefault(text, []).append(rank)
    lines = [
        text if len(where) == ranks else f"rank {', '.join(map(str, where))}: {text}"
        for text, where in by_text.items()
    ]
    return "\n".join(lines)
