"""Arguments of `save` and `load`: the ranks, and options that are not supported."""

from __future__ import annotations

import warnings
from typing import Any

from weft.collectives.process_group import is_initialized, member
from weft.errors import ArgumentError
from weft.formats.checkpoint_folder.background import Background
from weft.host.cores import launched
from weft.transport.group import Group

pending = Background()
"""The write that `async_save` has started; the next call of any function waits for it."""


def group_of(name: str, process_group: Group | None, no_dist: bool) -> Group | None:
    """The ranks that save or load together; `None` for this process alone.

    Raises:
        DistributedError: this process is not a member of the group.
    """
    if no_dist:
        return None
    if is_initialized():
        return member(process_group, name)
    if launched():
        warnings.warn(
            f"{name}: there is no process group, so each process works alone; call "
            "init_process_group() first, or give no_dist=True",
            stacklevel=3,
        )
    return None


def check_planner(name: str, planner: Any, planner_class: type) -> None:
    """Raise for planners that are not Weft's.

    Raises:
        ArgumentError: another planner, or a class derived from one.
    """
    if planner is not None and type(planner) is not planner_class:
        raise ArgumentError.here(
            f"{name}: expected a {planner_class.__name__}, got a {type(planner).__name__}; "
            f"planners of one's own do not exist"
        )


def refuse(name: str, option: str, value: Any, expected: Any) -> None:
    """Raise for an option that is not supported.

    Raises:
        ArgumentError: the option is not the expected value.
    """
    if value != expected:
        raise ArgumentError.here(f"{name}: expected {option}={expected}, got {value!r}")
