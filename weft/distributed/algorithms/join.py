"""`Join`: ranks with different numbers of batches, for whatever has a hook for it."""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import weft as wf
from weft.collectives.collective import all_reduce
from weft.collectives.work import Work
from weft.errors import ArgumentError
from weft.nn.parallel.data_parallel import DistributedDataParallel

__all__ = ["Join", "JoinHook", "Joinable"]


class JoinHook:
    """What a rank without data does while others have some; does nothing unless overridden."""

    def main_hook(self) -> None:
        """Make the collectives of an iteration of the others."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Called once after all ranks have joined.

        Args:
            is_last_joiner: whether this rank was among the last.
        """


class Joinable(abc.ABC):
    """A class whose instances take part in `Join`; each iteration calls `notify_join_context`."""

    @abc.abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """The hook; gets the arguments of `Join` that it does not know."""

    @property
    def join_device(self) -> Any:
        """The device of its collectives."""
        return wf.device("cpu")

    @property
    def join_process_group(self) -> Any:
        """The ranks; by default all."""
        return None


class Join:
    """Context in which ranks may have different numbers of batches.

    Args:
        joinables: one `DistributedDataParallel`, whose `join` this is, or objects with hooks.
        enable: `False` for a context without effect.
        throw_on_early_termination: must be false.
        kwargs: for the hooks.

    Raises:
        ArgumentError: a `DistributedDataParallel` with others.

    Example:
        >>> import weft.distributed as dist
        >>> dist.init_process_group()
        >>> model = wf.nn.parallel.DistributedDataParallel(wf.nn.Linear(1, 1))
        >>> with Join([model]):
        ...     model(wf.ones(1, 1)).sum().backward()
        >>> dist.destroy_process_group()
    """

    def __init__(
        self, joinables: Sequence[Any], enable: bool = True,
        throw_on_early_termination: bool = False, **kwargs: Any,
    ) -> None:  # fmt: skip
        models = [x for x in joinables if isinstance(x, DistributedDataParallel)]
        if throw_on_early_termination or (models and len(joinables) > 1):
            raise ArgumentError.here(
                "Join: expected one DistributedDataParallel, or other objects with hooks, and "
                "throw_on_early_termination=False"
            )
        self._joinables, self._enable = list(joinables), enable
        self._context = models[0].join(enable=enable) if models else contextlib.nullcontext()
        self._hooks = [] if models else [each.join_hook(**kwargs) for each in joinables]

    def __enter__(self) -> None:
        if self._hooks and self._enable:
            self._joinables[0].joined = False
        self._context.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._context.__exit__(kind, error, trace)
        if not self._hooks or not self._enable or error is not None:
            return
        group = self._joinables[0].join_process_group
        is_last = True
        while _active(group):
            for hook in self._hooks:
                hook.main_hook()
            is_last = False
        del self._joinables[0].joined
        for hook in self._hooks:
            hook.post_hook(is_last)

    @staticmethod
    def notify_join_context(joinable: Any) -> Work | None:
        """Tell the others that this rank has another batch.

        Args:
            joinable: only the first one in the context tells them.
        """
        if getattr(joinable, "joined", True):
            return None
        return all_reduce(wf.ones(1), group=joinable.join_process_group, async_op=True)


def _active(group: Any) -> int:
    """The number of ranks that have another batch."""
    told = wf.zeros(1)
    all_reduce(told, group=group)
    return int(told.item())
