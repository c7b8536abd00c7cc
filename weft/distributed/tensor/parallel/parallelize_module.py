"""`parallelize_module`: a plan of how ranks share a model's layers, by the paths of modules."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from typing import Any, TypeVar

from weft.collectives.process_group import get_process_group_ranks
from weft.distributed.device_mesh import DeviceMesh
from weft.distributed.tensor.parallel.style import ParallelStyle
from weft.eager.record import memory_pool
from weft.errors import ArgumentError
from weft.ir.node import at_user_line
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
    """Divide layers of a module among the ranks of a mesh, as a plan says.

    Parameters stay the same objects, of which each rank keeps its part; those that the plan does
    not name stay whole, and so are their gradients. All ranks get the same data.

    Args:
        device_mesh: of one dimension, as `mesh["tp"]`; all ranks if left out.
        parallelize_plan: a style for the module, or styles by path; `*` in a path stands for any
            name, as in `"layers.*.mlp.up"`.
        src_data_rank: 0, so that all ranks begin with the values of the first; `None` where they
            have the same already.

    Raises:
        ArgumentError: a path of no module, a mesh of several dimensions, or a layer that a style
            is not for.
        ShapeError: a size that the number of ranks does not divide.
        DistributedError: a module that has a style already, or is divided otherwise; or ranks with
            models of other shapes.

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
        raise ArgumentError(
            f"parallelize_module: expected a mesh of one dimension, got {mesh.ndim}; take a part "
            f'of it, as mesh["tp"]{at_user_line()}'
        )
    if src_data_rank not in (0, None):
        raise ArgumentError(
            f"parallelize_module: expected src_data_rank 0 or None, got {src_data_rank}"
            f"{at_user_line()}"
        )
    group, styles = mesh.get_group(), _styles(module, parallelize_plan)
    named: dict[str, Any] = dict([*module.named_parameters(), *module.named_buffers()])
    make_alike("parallelize_module", named, group, src_data_rank == 0)
    for path, style in styles.items():
        found = module.get_submodule(path)
        style.apply(found, path, group)
        register_state_hooks(found)
    memory_pool.empty_cache()  # whole parameters fit nothing that comes
    return module


def _styles(module: Module, plan: Plan | None) -> dict[str, ParallelStyle]:
    """Styles by paths of modules."""
    if isinstance(plan, ParallelStyle):
        return {"": plan}
    paths = [path for path, _ in module.named_modules(remove_duplicate=False)]
    found: dict[str, ParallelStyle] = {}
    for pattern, style in (plan or {}).items():
        meant = [path for path in paths if _fits(path, pattern)]
        if not meant:
            names = [path for path in paths if path]
            more = f", and {len(names) - _MOST_NAMED} more" * (len(names) > _MOST_NAMED)
            raise ArgumentError(
                f"parallelize_module: expected the path of a submodule ("
                f"{', '.join(names[:_MOST_NAMED])}{more}), got {pattern!r}{at_user_line()}"
            )
        found.update(dict.fromkeys(meant, style))
    return found


def _fits(path: str, pattern: str) -> bool:
    """Whether each name of a path is as the pattern has it."""
    names, wanted = path.split("."), pattern.split(".")
    pairs = zip(names, wanted, strict=False)
    return len(names) == len(wanted) and all([fnmatch.fnmatchcase(n, w) for n, w in pairs])
