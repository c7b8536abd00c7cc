"""What a trainer does: the names of runs and of their stages."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class TrainerStatus(StrEnum):
    """How far a run is."""

    INITIALIZING = "initializing"
    RUNNING = "running"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"


class TrainerFn(StrEnum):
    """The method of the trainer that runs."""

    FITTING = "fit"
    VALIDATING = "validate"
    TESTING = "test"
    PREDICTING = "predict"


class RunningStage(StrEnum):
    """The stage of a run."""

    TRAINING = "train"
    SANITY_CHECKING = "sanity_check"
    VALIDATING = "validate"
    TESTING = "test"
    PREDICTING = "predict"


class State(NamedTuple):
    """What a trainer does.

    Attributes:
        fn: the run, as in `TrainerFn`.
        status: as in `TrainerStatus`.
        stage: as in `RunningStage`; `None` between runs.
    """

    fn: str
    status: str
    stage: RunningStage | None = None

    @property
    def finished(self) -> bool:
        """Whether the last run ended well."""
        return self.status == TrainerStatus.FINISHED

    @property
    def stopped(self) -> bool:
        """Whether nothing is running."""
        return self.status != TrainerStatus.RUNNING
