"""Planners: options of saving and loading. They do not change Weft's plans."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DefaultLoadPlanner", "DefaultSavePlanner"]


@dataclass
class DefaultSavePlanner:
    """Accepted by `save`; its options do not change what is saved.

    Args:
        flatten_state_dict, flatten_sharded_tensors: have no effect.
        dedup_replicated_tensors, dedup_save_to_lowest_rank: have no effect.
        enable_plan_caching: has no effect.
    """

    flatten_state_dict: bool = True
    flatten_sharded_tensors: bool = True
    dedup_replicated_tensors: bool | None = None
    dedup_save_to_lowest_rank: bool = False
    enable_plan_caching: bool = False


@dataclass
class DefaultLoadPlanner:
    """Options of `load`.

    Args:
        flatten_state_dict, flatten_sharded_tensors: have no effect.
        allow_partial_load: whether keys that the checkpoint does not have keep their values.

    Example:
        >>> import tempfile, weft as wf, weft.distributed.checkpoint as dcp
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = dcp.save({"a": wf.ones(1)}, checkpoint_id=folder)
        ...     state = {"a": wf.zeros(1), "b": wf.zeros(1)}
        ...     planner = dcp.DefaultLoadPlanner(allow_partial_load=True)
        ...     dcp.load(state, checkpoint_id=folder, planner=planner)
        >>> state["a"].item(), state["b"].item()
        (1.0, 0.0)
    """

    flatten_state_dict: bool = True
    flatten_sharded_tensors: bool = True
    allow_partial_load: bool = False
