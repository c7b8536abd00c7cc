"""Creation of monitored sessions: variables are initialized or restored, and checked."""

from __future__ import annotations

import os
from typing import Any

from weft.errors import StateError
from weft.tf1 import logging
from weft.tf1.errors import DeadlineExceededError, FailedPreconditionError
from weft.tf1.framework.graph import fail, get_default_graph
from weft.tf1.session.options import ConfigProto
from weft.tf1.session.session import Session
from weft.tf1.train.checkpoint_state import get_checkpoint_state
from weft.tf1.train.monitored.scaffold import Scaffold

__all__ = ["ChiefSessionCreator", "SessionCreator", "WorkerSessionCreator"]


class SessionCreator:
    """Creates sessions: override `create_session`."""

    def create_session(self) -> Any:
        """A session with initialized variables."""
        raise NotImplementedError(f"{type(self).__name__} has no create_session()")


class ChiefSessionCreator(SessionCreator):
    """Initializes a session, or restores it from the newest checkpoint.

    Args:
        scaffold: the operations; `Scaffold()` by default.
        master: accepted; the session is in this process.
        config: options of the session.
        checkpoint_dir: the folder of checkpoints; if it has none, variables are initialized.
        checkpoint_filename_with_path: a specific checkpoint instead.

    Raises:
        StateError: some variables are not initialized afterwards.
    """

    def __init__(
        self, scaffold: Scaffold | None = None, master: str = "", config: ConfigProto | None = None,
        checkpoint_dir: str | None = None, checkpoint_filename_with_path: str | None = None,
    ) -> None:  # fmt: skip
        self._scaffold = scaffold or Scaffold()
        self._options: Any = (master, config)
        self._folder, self._path = checkpoint_dir, checkpoint_filename_with_path

    def create_session(self) -> Session:
        """The session."""
        scaffold = self._scaffold.finalize()
        session = _open(self._options)
        try:
            if not self._restored(session):
                session.run(scaffold.init_op, scaffold.init_feed_dict)
                if scaffold.init_fn is not None:
                    scaffold.init_fn(session)
            missing = _initialize_local(scaffold, session)
            if missing:
                raise fail(
                    StateError,
                    f"ChiefSessionCreator: expected all variables to have a value, but {missing} "
                    "have none; the scaffold's init_op, init_fn or local_init_op gives it to them",
                )
        except BaseException:
            session.close()
            raise
        return session

    def _restored(self, session: Session) -> bool:
        saver = self._scaffold.saver
        if saver is None:
            return False
        if self._path:
            saver.restore(session, self._path)
            return True
        found = get_checkpoint_state(self._folder) if self._folder else None
        if found is None:
            return False
        logging.info("Restoring parameters from %s", found.model_checkpoint_path)
        saver.restore(session, found.model_checkpoint_path)
        saver.recover_last_checkpoints(found.all_model_checkpoint_paths)
        return True


class WorkerSessionCreator(SessionCreator):
    """A session that does not initialize variables.

    Every session of Weft has its own variables, so a chief cannot initialize them: this serves
        graphs without variables, or with local ones only.

    Args:
        scaffold, master, config: as in `ChiefSessionCreator`.
        max_wait_secs: accepted; there is nothing to wait for.

    Raises:
        DeadlineExceededError: some variables are not initialized.
    """

    def __init__(
        self, scaffold: Scaffold | None = None, master: str = "", config: ConfigProto | None = None,
        max_wait_secs: float = 30 * 60,
    ) -> None:  # fmt: skip
        del max_wait_secs
        self._scaffold = scaffold or Scaffold()
        self._options: Any = (master, config)

    def create_session(self) -> Session:
        """The session."""
        scaffold = self._scaffold.finalize()
        session = _open(self._options)
        missing = _initialize_local(scaffold, session)
        if missing:
            session.close()
            raise DeadlineExceededError(
                None,
                None,
                f"WorkerSessionCreator: expected a chief to have initialized {missing}, but every "
                "process has its own variables; pass is_chief=True on each rank, with "
                "hvd.BroadcastGlobalVariablesHook(0) for a common beginning",
            )
        return session


def _open(options: tuple[str, ConfigProto | None]) -> Session:
    master, config = options
    return Session(master, graph=get_default_graph(), config=config)


def _initialize_local(scaffold: Scaffold, session: Session) -> list[str]:
    """Run `local_init_op`; returns the names of variables that are still not initialized."""
    missing = _missing(session, scaffold.ready_for_local_init_op)
    if missing:
        return missing
    session.run(scaffold.local_init_op, scaffold.local_init_feed_dict)
    return _missing(session, scaffold.ready_op)


def _missing(session: Session, ready_op: Any) -> list[str]:
    try:
        found: Any = session.run(ready_op)
    except FailedPreconditionError as error:
        return [error.message]
    return [] if found is None else [os.fsdecode(name) for name in found]
