"""`tf.train.SessionManager`: sessions whose variables have values, made or waited for."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from weft.errors import ArgumentError, GraphError, StateError
from weft.tf1 import logging
from weft.tf1.errors import (
    AbortedError,
    DeadlineExceededError,
    FailedPreconditionError,
    UnavailableError,
)
from weft.tf1.framework.graph import Graph, fail, get_default_graph
from weft.tf1.session.options import ConfigProto
from weft.tf1.session.session import Session
from weft.tf1.train.checkpoint_state import get_checkpoint_state

_ALONE: Final = (
    "; without a master nobody else can give them values: pass that of a tf.train.Server, or "
    "is_chief=True on each rank of a job, with hvd.BroadcastGlobalVariablesHook(0) for a common "
    "beginning"
)
FIRST_WAIT: Final = 0.1
"""Seconds before the second look; each wait is twice the last, up to `recovery_wait_secs`."""


class SessionManager:
    """Makes sessions, restored or initialized, or waits until another process has done it.

    Args:
        local_init_op: run in each new session.
        ready_op: gives the names of uninitialized variables.
        ready_for_local_init_op: the same, for the inputs of `local_init_op`.
        graph: the default graph by default.
        recovery_wait_secs: the longest wait between two looks whether the variables are there.
        local_init_run_options: options of the run of `local_init_op`.
        local_init_feed_dict: its feeds.

    Raises:
        GraphError: there is a `ready_for_local_init_op`, but no `local_init_op`.

    Example:
        >>> import weft.tf1 as tf
        >>> with tf.Graph().as_default():
        ...     v = tf.Variable(3.0)
        ...     manager = tf.train.SessionManager(ready_op=tf.report_uninitialized_variables())
        ...     session = manager.prepare_session("", tf.global_variables_initializer())
        ...     float(session.run(v))
        3.0
    """

    def __init__(
        self, local_init_op: Any = None, ready_op: Any = None, ready_for_local_init_op: Any = None,
        graph: Graph | None = None, recovery_wait_secs: float = 30,
        local_init_run_options: Any = None, local_init_feed_dict: Any = None,
    ) -> None:  # fmt: skip
        if ready_for_local_init_op is not None and local_init_op is None:
            text = "If you pass a ready_for_local_init_op you must also pass a local_init_op"
            raise fail(GraphError, f"SessionManager: {text} , got {ready_for_local_init_op!r}")
        self._graph = get_default_graph() if graph is None else graph
        self._local_init = local_init_op, local_init_feed_dict, local_init_run_options
        self._ready_op, self._ready_for_local = ready_op, ready_for_local_init_op
        self._wait = recovery_wait_secs

    def prepare_session(
        self, master: str, init_op: Any = None, saver: Any = None,
        checkpoint_dir: str | None = None, checkpoint_filename_with_path: str | None = None,
        wait_for_checkpoint: bool = False, max_wait_secs: float = 7200,
        config: ConfigProto | None = None, init_feed_dict: Any = None,
        init_fn: Callable[[Any], Any] | None = None,
    ) -> Session:  # fmt: skip
        """A session that is restored from a checkpoint or, if there is none, initialized.

        Args:
            master: the target of the session.
            init_op: initializes the variables.
            saver: restores them.
            checkpoint_dir: the folder whose newest checkpoint is restored.
            checkpoint_filename_with_path: a certain checkpoint instead.
            wait_for_checkpoint: whether to wait until the folder has one.
            max_wait_secs: how long.
            config: options of the session.
            init_feed_dict: feeds of `init_op`.
            init_fn: called with the session after `init_op`.

        Raises:
            StateError: some variables have no value afterwards.
        """
        session, restored = self._opened(
            master, saver, checkpoint_dir, checkpoint_filename_with_path, wait_for_checkpoint,
            max_wait_secs, config,
        )  # fmt: skip
        try:
            if not restored:
                self._initialize(session, init_op, init_feed_dict, init_fn)
            self._check_ready(session)
        except BaseException:
            _close(session)
            raise
        return session

    def _check_ready(self, session: Session) -> None:
        missing, what = self._local_missing(session), "ready for local_init"
        if not missing:
            missing, what = self._missing(session, self._ready_op), "ready"
        if missing:
            raise fail(
                StateError,
                f"prepare_session: Init operations did not make model {what}: Variables not "
                f"initialized: {', '.join(missing)}; init_op, init_fn or local_init_op gives them "
                "values",
            )

    def _initialize(self, session: Session, init_op: Any, feeds: Any, init_fn: Any) -> None:
        if init_op is None and init_fn is None and self._local_init[0] is None:
            raise fail(
                StateError,
                "prepare_session: the model is not initialized, there is no checkpoint to restore, "
                "and no init_op or init_fn or local_init_op was given",
            )
        if init_op is not None:
            session.run(init_op, feeds)
        if init_fn is not None:
            init_fn(session)

    def recover_session(
        self, master: str, saver: Any = None, checkpoint_dir: str | None = None,
        checkpoint_filename_with_path: str | None = None, wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200, config: ConfigProto | None = None,
    ) -> tuple[Session, bool]:  # fmt: skip
        """A session, restored if there is a checkpoint; and whether its variables have values.

        Args:
            master, saver, checkpoint_dir, checkpoint_filename_with_path, wait_for_checkpoint,
                max_wait_secs, config: as of `prepare_session`.
        """
        session, restored = self._opened(
            master, saver, checkpoint_dir, checkpoint_filename_with_path, wait_for_checkpoint,
            max_wait_secs, config,
        )  # fmt: skip
        missing = self._local_missing(session)
        if not restored:
            return session, False
        missing = missing or self._missing(session, self._ready_op)
        if missing:
            logging.info("The checkpoint does not make the model ready: %s", missing)
        return session, not missing

    def wait_for_session(
        self, master: str, config: ConfigProto | None = None, max_wait_secs: float | None = math.inf
    ) -> Session:
        """A session, once another process has given values to all variables.

        Args:
            master: the target of the session.
            config: options of the session.
            max_wait_secs: how long to wait; `None` for ever.

        Raises:
            DeadlineExceededError: some have none by then.
        """
        patience = math.inf if max_wait_secs is None else max_wait_secs
        patience = patience if master else 0
        end, pause = time.monotonic() + patience, min(FIRST_WAIT, self._wait)
        while True:
            session, why = self._tried(master, config)
            if session is not None:
                return session
            if time.monotonic() + pause > end:
                text = f"Session was not ready after waiting {patience:g} secs: {why}"
                advice = "" if master else _ALONE
                raise DeadlineExceededError(None, None, f"wait_for_session: {text}{advice}")
            logging.info("Waiting for the model to be ready: %s", why)
            time.sleep(pause)
            pause = min(2 * pause, max(self._wait, pause))

    def _tried(self, master: str, config: ConfigProto | None) -> tuple[Session | None, str]:
        """A session that is ready, or why there is none yet."""
        try:
            session = Session(master, self._graph, config)
        except (UnavailableError, AbortedError) as error:  # servers that do not run yet
            return None, error.message
        try:
            missing = self._local_missing(session) or self._missing(session, self._ready_op)
        except (UnavailableError, AbortedError) as error:
            missing = [error.message]
        except BaseException:
            _close(session)
            raise
        if not missing:
            return session, ""
        _close(session)
        return None, f"variables without a value: {', '.join(missing)}"

    def _opened(
        self, master: str, saver: Any, folder: str | None, path: str | None, wait: bool,
        patience: float, config: ConfigProto | None,
    ) -> tuple[Session, bool]:  # fmt: skip
        """A session, and whether it is restored."""
        if folder and path:
            text = "SessionManager: expected checkpoint_dir or checkpoint_filename_with_path"
            raise fail(ArgumentError, f"{text}, got both: {folder!r} and {path!r}")
        session = Session(master, self._graph, config)
        try:
            return session, self._restored(session, saver, folder, path, patience if wait else 0)
        except BaseException:
            _close(session)
            raise

    def _restored(
        self, session: Session, saver: Any, folder: str | None, path: str | None, patience: float
    ) -> bool:
        if saver is None or not (folder or path):
            return False
        if path:
            saver.restore(session, path)
            return True
        end, pause = time.monotonic() + patience, min(FIRST_WAIT, self._wait)
        found = get_checkpoint_state(str(folder))
        while found is None or not found.model_checkpoint_path:
            if time.monotonic() >= end:
                return False
            logging.info("Waiting for a checkpoint in %s.", folder)
            time.sleep(pause)
            pause = min(2 * pause, self._wait)
            found = get_checkpoint_state(str(folder))
        logging.info("Restoring parameters from %s", found.model_checkpoint_path)
        saver.restore(session, found.model_checkpoint_path)
        saver.recover_last_checkpoints(found.all_model_checkpoint_paths)
        return True

    def _local_missing(self, session: Session) -> list[str]:
        """Runs `local_init_op`, unless its inputs are missing: these are returned."""
        op, feeds, options = self._local_init
        if op is None:
            return []
        missing = self._missing(session, self._ready_for_local)
        if not missing:
            session.run(op, feeds, options)
        return missing

    def _missing(self, session: Session, ready_op: Any) -> list[str]:
        return missing_by(ready_op, session)


def missing_by(ready_op: Any, session: Any) -> list[str]:
    """What an operation says is not initialized yet; nothing without one.

    It gives names; or nothing, or numbers, when all is ready; or it needs what is missing.
    """
    if ready_op is None:
        return []
    try:
        found: Any = session.run(ready_op)
    except FailedPreconditionError as error:
        return [error.message]
    if found is None or getattr(found, "dtype", np.dtype(int)).kind != "O":
        return []
    return [os.fsdecode(name) for name in found.ravel()]


def _close(session: Session) -> None:
    """Close a session of which another error is told already."""
    with contextlib.suppress(Exception):
        session.close()
