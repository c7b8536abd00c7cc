"""An optimizer whose state is sharded over ranks; each rank updates its parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from weft.collectives.elements import array, compute_pending, fill, room_of
from weft.collectives.objects import gather_object
from weft.collectives.process_group import member
from weft.errors import OptimizerError
from weft.nn.parallel.alike import make_alike
from weft.optim.optimizer import Optimizer
from weft.transport import collective
from weft.transport.group import Group


class ZeroRedundancyOptimizer:
    """Keeps the state of 1 / ranks of the parameters on each rank; every rank has all parameters.

    Each rank updates its parameters and broadcasts them. Parameters, the largest first, are
    assigned to the rank with the fewest elements so far. Updates are bitwise those of the optimizer
    itself.

    Args:
        params: tensors, all in one group.
        optimizer_class: as `weft.optim.Adam`.
        process_group: the ranks; by default all.
        defaults: options of `optimizer_class`.

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
            raise OptimizerError.here("ZeroRedundancyOptimizer: expected tensors, got groups")
        if not self._params:
            raise OptimizerError.here("ZeroRedundancyOptimizer: got no parameters")
        self._owned = self._divided()
        own = self._owned[self.process_group.index]
        self.optim = optimizer_class(own, **defaults) if own else None
        self._whole: dict[str, Any] | None = None
        # whether all ranks are known to have started with the same parameters
        self._compared = False

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
        """The options, as this rank's optimizer has them."""
        return [] if self.optim is None else self.optim.param_groups

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop all gradients."""
        for p in self._params:
            if p.grad is not None and not set_to_none:
                p.grad.zero_()
            elif set_to_none:
                p.grad = None

    def step(self) -> None:
        """Update this rank's parameters, and receive the others from their ranks.

        Raises:
            DistributedError: at the first step, if ranks have different parameters.
        """
        if not self._compared:
            named = {f"parameter {i}": p for i, p in enumerate(self._params)}
            make_alike("ZeroRedundancyOptimizer", named, self.process_group, take=False)
            self._compared = True
        if self.optim is not None:
            self.optim.step()
        compute_pending()
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
        found: list[Any] = [None] * self.process_group.size
        gather_object(self._own_state(), found, to, self.process_group)
        if self.process_group.ranks[self.process_group.index] == to:
            options = next(state["options"] for state in found if state is not None)
            pairs = [pair for state in found if state is not None for pair in state["entries"]]
            numbers = list(range(len(self._params)))
            self._whole = {
                "state": dict(sorted(pairs, key=lambda pair: pair[0])),
                "param_groups": [{**options, "params": numbers}],
            }

    def _own_state(self) -> dict[str, Any] | None:
        """The options, and this rank's state, with the numbers of its parameters."""
        if self.optim is None:
            return None
        state, numbers = self.optim.state_dict(), self._numbers()
        (group,) = state["param_groups"]
        return {
            "options": {k: v for k, v in group.items() if k != "params"},
            "entries": [(numbers[i], entries) for i, entries in state["state"].items()],
        }

    def _numbers(self) -> list[int]:
        """The numbers of this rank's parameters among all."""
        places = {id(p): i for i, p in enumerate(self._params)}
        return [places[id(p)] for p in self._owned[self.process_group.index]]

    def state_dict(self) -> dict[str, Any]:
        """The whole state, which `consolidate_state_dict` collected.

        It is that of a plain optimizer of all parameters, whatever the number of ranks.

        Raises:
            OptimizerError: the state was not consolidated on this rank.
        """
        if self._whole is None:
            raise OptimizerError.here(
                "ZeroRedundancyOptimizer: expected consolidate_state_dict() on all ranks before "
                "state_dict() on the one that it names"
            )
        return self._whole

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load this rank's shard of a whole state, from any number of ranks or a plain optimizer.

        Raises:
            OptimizerError: the groups differ in number or size.
        """
        sizes = [len(group["params"]) for group in state_dict["param_groups"]]
        if sizes != [len(self._params)]:
            raise OptimizerError.here(
                f"ZeroRedundancyOptimizer: expected a state of groups of {[len(self._params)]} "
                f"parameters, got {sizes}"
            )
        if self.optim is not None:
            (group,) = state_dict["param_groups"]
            entries = [state_dict["state"].get(group["params"][i], {}) for i in self._numbers()]
            own = {**group, "params": list(range(len(entries)))}
            self.optim.load_state_dict({"state": dict(enumerate(entries)), "param_groups": [own]})
