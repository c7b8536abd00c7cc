"""`Join`: ranks with different numbers of batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from weft.errors import ArgumentError
from weft.nn.parallel.data_parallel import DistributedDataParallel

__all__ = ["Join"]


@contextmanager
def Join(
    joinables: Sequence[Any], enable: bool = True, throw_on_early_termination: bool = False,
    **kwargs: Any,
) -> Iterator[None]:  # fmt: skip
    """Context in which ranks may have different numbers of batches.

    Args:
        joinables: one `DistributedDataParallel`, whose `join` this is.
        enable: `False` for a context without effect.
        throw_on_early_termination: must be false.
        kwargs: as `divide_by_initial_world_size`, for its `join`.

    Raises:
        ArgumentError: something else than one model.

    Example:
        >>> import weft as wf, weft.distributed as dist
        >>> dist.init_process_group()
        >>> model = wf.nn.parallel.DistributedDataParallel(wf.nn.Linear(1, 1))
        >>> with Join([model]):
        ...     model(wf.ones(1, 1)).sum().backward()
        >>> dist.destroy_process_group()
    """
    if len(joinables) != 1 or not isinstance(joinables[0], DistributedDataParallel):
        kinds = ", ".join([type(each).__name__ for each in joinables])
        raise ArgumentError.here(f"Join: expected one DistributedDataParallel, got {kinds}")
    how = {"throw_on_early_termination": throw_on_early_termination, **kwargs}
    with joinables[0].join(enable=enable, **how):
        yield
