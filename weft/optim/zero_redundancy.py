"""An optimizer whose state is divided among ranks: each updates a part of the parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from weft import distributed as dist
from weft.distributed.elements import array, fill, room_of, settle
from weft.distributed.process_group import member
from weft.errors import OptimizerError
from weft.nn.parallel.alike import make_alike
from weft.ops.base import at_user_line
from weft.optim.optimizer import Optimizer
from weft.transport import collective
from weft.transport.group import Group


class ZeroRedundancyOptimizer:
    """Keeps the state of 1 / ranks of the parameters on each rank; all have all parameters.

    Each rank updates its part, and gives the others the result. Parameters go to the rank that has
    least so far, the largest first; updates are those of the optimizer itself, bit by bit.

    Args:
        params: tensors; all in one group.
        optimizer_class: as `weft.optim.Adam`.
        process_group: the ranks; all if left out.
        defaults: its options.

    Source: Rajbhandari et al., "ZeRO" (2020), stage 1.

    Example:
        >>> import weft as wf, weft.distributed as dist
        >>> dist.init_process_group()
        >>> w = wf.nn.Parameter(wf.ones(2))
        >>> optimizer = wf.optim.ZeroRedundancyOptimizer([w], wf.optim.SGD, lr=0.5)
        >>> w.sum().backward()
        >>> optimizer.step()
        >>> w.tolist()
        [0.5, 0.5]
        >>> dist.destroy_process_group()
    """

    def __init__(
        self, params: Iterable[Any], optimizer_class: Callable[..., Optimizer],
        process_group: Group | None = None, **defaults: Any,
    ) -> None:  # fmt: skip
        self.process_group = member(process_group, "ZeroRedundancyOptimizer")
        self._params = list(params)
        if any(isinstance(p, dict) for p in self._params):
            raise OptimizerError(
                f"ZeroRedundancyOptimizer: expected tensors, got groups{at_user_line()}"
            )
        self._owned = self._divided()
        own = self._owned[self.process_group.index]
        self.optim = optimizer_class(own, **defaults) if own else None
        self._whole: dict[str, Any] | None = None
        self._compared = False  # whether all ranks are known to have begun with the same

    def _divided(self) -> list[list[Any]]:
        """The parameters of each rank."""
        owned: list[list[Any]] = [[] for _ in self.process_group.ranks]
        loads = [0] * len(owned)
        for p in sorted(self._params, key=lambda p: -p.numel()):
            least = loads.index(min(loads))
            owned[least].append(p)
            loads[least] += p.numel()
        return owned

    @property
    def param_groups(self) -> list[dict[str, Any]]:
        """The options, as of this rank's optimizer."""
        return [] if self.optim is None else self.optim.param_groups

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget all gradients."""
        for p in self._params:
            if p.grad is not None and not set_to_none:
                p.grad.zero_()
            elif set_to_none:
                p.grad = None

    def step(self) -> None:
        """Update this rank's parameters, and take the others' from their ranks.

        Raises:
            DistributedError: at the first step, if ranks have different parameters.
        """
        if not self._compared:
            named = {f"parameter {i}": p for i, p in enumerate(self._params)}
            make_alike("ZeroRedundancyOptimizer", named, self.process_group, take=False)
            self._compared = True
        if self.optim is not None:
            self.optim.step()
        settle()
        index = self.process_group.index
        arrays = [
            [array(p) if rank == index else room_of(p) for p in owned]
            for rank, owned in enumerate(self._owned)
        ]
        sizes = "+".join([str(sum([x.nbytes for x in found])) for found in arrays])
        collective.all_gather_lists(self.process_group, arrays, f"parameters of {sizes} bytes")
        for rank, owned in enumerate(self._owned):
            if rank != index:
                for p, found in zip(owned, arrays[rank], strict=True):
                    fill(p, found)

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Collect the whole state on rank `to`, for `state_dict` there; all ranks call it."""
        states = [None] * self.process_group.size
        state = None if self.optim is None else self.optim.state_dict()
        dist.gather_object(state, states, to, self.process_group)
        if self.process_group.ranks[self.process_group.index] == to:
            self._whole = {"ranks": states}

    def state_dict(self) -> dict[str, Any]:
        """The whole state, which `consolidate_state_dict` has collected.

        Raises:
            OptimizerError: it has not, here.
        """
        if self._whole is None:
            raise OptimizerError(
                "ZeroRedundancyOptimizer: expected consolidate_state_dict() on all ranks before "
                f"state_dict() on the one that it names{at_user_line()}"
            )
        return self._whole

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take this rank's part of a whole state of as many ranks.

        Raises:
            OptimizerError: it is of another number of ranks.
        """
        states = state_dict["ranks"]
        if len(states) != self.process_group.size:
            raise OptimizerError(
                f"ZeroRedundancyOptimizer: expected a state of {self.process_group.size} ranks, "
                f"got one of {len(states)}{at_user_line()}"
            )
        if self.optim is not None:
            self.optim.load_state_dict(states[self.process_group.index])
