"""Elastic training: committed state, and a job that resumes from its last commit.

When a rank fails, all ranks end, and `weft launch --max-restarts` starts them again; they resume
from the last commit, which rank 0 keeps in a folder. Horovod itself resumes in the surviving
processes; here these end, too.
"""

from __future__ import annotations

import abc
import copy
import functools
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from weft.checkpoint.checkpointer import Checkpointer
from weft.collectives.objects import broadcast_object_list
from weft.horovod import basics
from weft.host.cores import KEPT
from weft.transport import session

COMMITS = "commits"
"""The name of the commits' folder, in the folder that the launcher keeps over restarts."""


class State(abc.ABC):
    """State from which training resumes.

    Args:
        folder: where commits are kept; by default the launcher's folder. Without either they are
            kept in memory only.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        kept = os.environ.get(KEPT)
        chosen = (Path(kept) / COMMITS if kept else None) if folder is None else Path(folder)
        self._checkpoints: Checkpointer | None = None
        self._folder = chosen
        self._commits = 0
        self._callbacks: list[Callable[[], Any]] = []

    def register_reset_callbacks(self, callbacks: Sequence[Callable[[], Any]]) -> None:
        """Register functions to call when a job resumes with another number of ranks."""
        self._callbacks.extend(callbacks)

    def on_reset(self) -> None:
        """Call the registered functions, which may scale learning rates for example."""
        for callback in self._callbacks:
            callback()

    def commit(self) -> None:
        """Save the current state: in memory, and on rank 0 in the folder."""
        self.save()
        self._commits += 1
        files = self._files()
        if files is not None:
            files.save(self._commits, {"ranks": basics.size(), **self._kept()})
        self.check_host_updates()

    def check_host_updates(self) -> None:
        """Raise if another rank has failed; the number of ranks is fixed until a job restarts.

        Raises:
            DistributedError: names the rank and its error.
        """
        session.world().transport.check()

    def load(self) -> bool:
        """Load the previous job's last commit; returns whether the number of ranks has changed."""
        files = self._files()
        restored = None if files is None else files.restore()
        if restored is not None:
            self._commits = int(restored.step)
            self._take(restored.state)
        told: list[Any] = [self._commits, 0 if restored is None else int(restored.state["ranks"])]
        broadcast_object_list(told, 0)
        self._commits = int(told[0])
        return told[1] not in (0, basics.size())

    def close(self) -> None:
        """Wait until the last commit is on the disk."""
        if self._checkpoints is not None:
            self._checkpoints.close()
            self._checkpoints = None

    def _files(self) -> Checkpointer | None:
        if self._checkpoints is None and self._folder is not None and basics.rank() == 0:
            self._checkpoints = Checkpointer(self._folder, keep=2)
        return self._checkpoints

    @abc.abstractmethod
    def save(self) -> None:
        """Keep a copy in memory."""

    @abc.abstractmethod
    def restore(self) -> None:
        """Restore the copy."""

    @abc.abstractmethod
    def sync(self) -> None:
        """Copy rank 0's state to all ranks."""

    @abc.abstractmethod
    def _kept(self) -> Mapping[str, Any]:
        """What a commit contains."""

    @abc.abstractmethod
    def _take(self, kept: Mapping[str, Any]) -> None:
        """Load a commit."""


class ObjectState(State):
    """State of numbers, strings, tensors and nested structures of them, as attributes.

    Args:
        folder: see `State`.
        kwargs: names and initial values.
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None, **kwargs: Any) -> None:
        super().__init__(folder)
        self._names = tuple(kwargs)
        for name, value in kwargs.items():
            setattr(self, name, value)
        self.save()

    def _values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._names}

    def _set(self, values: Mapping[str, Any]) -> None:
        for name in self._names:
            setattr(self, name, values[name])

    def save(self) -> None:
        """Keep a copy in memory."""
        self._saved = copy.deepcopy(self._values())

    def restore(self) -> None:
        """Restore the copy."""
        self._set(copy.deepcopy(self._saved))

    def sync(self) -> None:
        """Copy rank 0's values to all ranks, and keep a copy in memory."""
        self._set(_from_first(self._values()))
        self.save()

    def _kept(self) -> Mapping[str, Any]:
        return {"values": self._saved}

    def _take(self, kept: Mapping[str, Any]) -> None:
        self._set(kept["values"])


class StatefulState(ObjectState):
    """State of objects with `state_dict` and `load_state_dict`, and of attributes.

    Args:
        objects: by name; each is also an attribute, and stays the same object.
    """

    def __init__(
        self, objects: Mapping[str, Any], folder: str | os.PathLike[str] | None = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        self._objects = dict(objects)
        for name, each in self._objects.items():
            setattr(self, name, each)
        super().__init__(folder, **kwargs)

    def save(self) -> None:
        """Keep a copy in memory."""
        super().save()
        self._states = {n: copy.deepcopy(x.state_dict()) for n, x in self._objects.items()}

    def restore(self) -> None:
        """Restore the copy."""
        super().restore()
        self._load(copy.deepcopy(self._states))

    def sync(self) -> None:
        """Copy rank 0's objects and values to all ranks, and keep a copy in memory."""
        self._load(_from_first({n: x.state_dict() for n, x in self._objects.items()}))
        super().sync()

    def _load(self, states: Mapping[str, Any]) -> None:
        for name, each in self._objects.items():
            each.load_state_dict(states[name])

    def _kept(self) -> Mapping[str, Any]:
        return {**super()._kept(), "objects": self._states}

    def _take(self, kept: Mapping[str, Any]) -> None:
        super()._take(kept)
        self._load(kept["objects"])


def _from_first(x: Any) -> Any:
    objects = [x]
    broadcast_object_list(objects, 0)
    return objects[0]


def run(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a training function so that it resumes from the last commit.

    Args:
        func: takes a state, then any arguments.

    All ranks start with rank 0's state. If the previous job had another number of ranks, the
    state's reset callbacks are called. An error ends the job: start it with
    `weft launch --max-restarts`.
    """

    @functools.wraps(func)
    def training(state: State, *args: Any, **kwargs: Any) -> Any:
        basics.init()
        changed = state.load()
        state.sync()
        if changed:
            state.on_reset()
        try:
            return func(state, *args, **kwargs)
        finally:
            state.close()

    return training
