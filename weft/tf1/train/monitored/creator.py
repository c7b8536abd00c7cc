"""Creation of monitored sessions: variables are initialized or restored, and checked."""

from __future__ import annotations

from typing import Any

from weft.tf1.session.options import ConfigProto
from weft.tf1.session.session import Session
from weft.tf1.train.monitored.scaffold import Scaffold
from weft.tf1.train.monitored.session_manager import SessionManager

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
        master: the target of the session: a server, or "" for this process.
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
        self._master, self._config = master, config
        self._folder, self._path = checkpoint_dir, checkpoint_filename_with_path

    def create_session(self) -> Session:
        """The session."""
        scaffold = self._scaffold.finalize()
        return manager_of(scaffold).prepare_session(
            self._master, scaffold.init_op, scaffold.saver, self._folder, self._path,
            config=self._config, init_feed_dict=scaffold.init_feed_dict, init_fn=scaffold.init_fn,
        )  # fmt: skip


class WorkerSessionCreator(SessionCreator):
    """A session whose variables a chief, another process, initializes or restores.

    Args:
        scaffold, master, config: as in `ChiefSessionCreator`.
        max_wait_secs: how long to wait for the chief.
        recovery_wait_secs: the longest wait between two looks whether it has.

    Raises:
        DeadlineExceededError: some variables are not initialized by then.
    """

    def __init__(
        self, scaffold: Scaffold | None = None, master: str = "", config: ConfigProto | None = None,
        max_wait_secs: float | None = 30 * 60, recovery_wait_secs: float = 30,
    ) -> None:  # fmt: skip
        self._scaffold = scaffold or Scaffold()
        self._master, self._config = master, config
        self._patience, self._wait = max_wait_secs, recovery_wait_secs

    def create_session(self) -> Session:
        """The session."""
        scaffold = self._scaffold.finalize()
        manager = manager_of(scaffold, self._wait)
        return manager.wait_for_session(self._master, self._config, self._patience)


def manager_of(scaffold: Scaffold, wait: float = 30) -> SessionManager:
    """The manager of the sessions of a finalized scaffold."""
    return SessionManager(
        scaffold.local_init_op, scaffold.ready_op, scaffold.ready_for_local_init_op,
        recovery_wait_secs=wait, local_init_feed_dict=scaffold.local_init_feed_dict,
    )  # fmt: skip
