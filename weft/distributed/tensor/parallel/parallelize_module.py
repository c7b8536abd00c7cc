"""`parallelize_module`: tensor parallelism by a plan of styles for the paths of modules."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from typing import Any, TypeVar

from weft.collectives.process_group import get_process_group_ranks
from weft.distributed.device_mesh import DeviceMesh
from weft.distributed.tensor.parallel.style import ParallelStyle
from weft.eager.record.memory import memory_pool
from weft.errors import ArgumentError
from weft.nn.module.module import Module
from weft.nn.parallel.alike import make_alike
from weft.nn.parallel.state import register_state_hooks

__all__ = ["parallelize_module"]

M = TypeVar("M", bound=Module)
Plan = ParallelStyle | Mapping[str, ParallelStyle]
_MOST_NAMED = 20


def parallelize_module(
    module: M, device_mesh: DeviceMesh | None = None, parallelize_plan: Plan | None = None, *,
    src_data_rank: int | None = 0,
) -> M:  # fmt: skip
    """Shard layers of a module over the ranks of a mesh, as a plan specifies.

    Parameters stay the same objects, of which each rank keeps its shard; those that the plan does
    not name are replicated, with their gradients. All ranks must get the same data.

    Args:
        module: the module, which is changed in place.
        device_mesh: with one dimension, as `mesh["tp"]`; by default all ranks.
        parallelize_plan: a style for the module, or styles by path; `*` in a path matches any name,
            as in `"layers.*.mlp.up"`.
        src_data_rank: 0 to start with the first rank's values; `None` if all ranks have the same.

    Raises:
        ArgumentError: a path that matches no module, a mesh with several dimensions, or a style
            that does not support the layer.
        ShapeError: a size that is not divisible by the number of ranks.
        DistributedError: a module that has a style or is sharded already, or ranks with models of
            different shapes.

    Example:
        >>> import weft as wf, weft.distributed as dist
        >>> from weft.distributed.tensor.parallel import (
        ...     ColwiseParallel, RowwiseParallel, parallelize_module,
        ... )
        >>> dist.init_process_group()
        >>> mlp = wf.nn.Sequential(wf.nn.Linear(4, 8), wf.nn.ReLU(), wf.nn.Linear(8, 4))
        >>> plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
        >>> parallelize_module(mlp, dist.init_device_mesh("cpu", (1,)), plan)(wf.ones(2, 4)).shape
        (2, 4)
        >>> dist.destroy_process_group()
    """
    mesh = DeviceMesh("cpu", get_process_group_ranks()) if device_mesh is None else device_mesh
    if mesh.ndim != 1:
        raise ArgumentError.here(
            f"parallelize_module: expected a mesh of one dimension, got {mesh.ndim}; take a part "
            f'of it, as mesh["tp"]'
        )
    if src_data_rank not in (0, None):
        raise ArgumentError.here(
            f"parallelize_module: expected src_data_rank 0 or None, got {src_data_rank}"
        )
    group, styles = mesh.get_group(), _styles(module, parallelize_plan)
    named: dict[str, Any] = dict([*module.named_parameters(), *module.named_buffers()])
    make_alike("parallelize_module", named, group, src_data_rank == 0)
    for path, style in styles.items():
        layer = module.get_submodule(path)
        style.apply(layer, path, group)
        register_state_hooks(layer)
    memory_pool.empty_cache()  # memory of whole parameters fits no later tensor
    return module


def _styles(module: Module, plan: Plan | None) -> dict[str, ParallelStyle]:
    """Styles by paths of modules."""
    if isinstance(plan, ParallelStyle):
        return {"": plan}
    paths = [path for path, _ in module.named_modules(remove_duplicate=False)]
    styles: dict[str, ParallelStyle] = {}
    for pattern, style in (plan or {}).items():
        meant = [path for path in paths if _fits(path, pattern)]
        if not meant:
            names = [path for path in paths if path]
            more = f", and {len(names) - _MOST_NAMED} more" * (len(names) > _MOST_NAMED)
            raise ArgumentError.here(
                f"parallelize_module: expected the path of a submodule ("
                f"{', '.join(names[:_MOST_NAMED])}{more}), got {pattern!r}"
            )
        styles.update(dict.fromkeys(meant, style))
    return styles


def _fits(path: str, pattern: str) -> bool:
    """Whether each name of a path matches the pattern's."""
    names, wanted = path.split("."), pattern.split(".")
    pairs = zip(names, wanted, strict=False)
    return len(names) == len(wanted) and all([fnmatch.fnmatchcase(n, w) for n, w in pairs])
