"""The part of an optimizer that saves and loads its state, in the layout of PyTorch's files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from weft.checkpoint.slices import own_part, sliced
from weft.eager.functions.api import Tensor
from weft.eager.record.pending.determinism import end_program
from weft.eager.tensor.dispatch import leaf, wrap
from weft.errors import OptimizerError
from weft.optim.hook import Hooks


class SavedState(Hooks):
    """Groups of parameters and the state of each parameter, which files number."""

    state: defaultdict[Tensor, dict[str, Any]]
    param_groups: list[dict[str, Any]]
    carries: ClassVar[tuple[str, ...]] = ()
    """Numbers that a parameter's state carries from step to step, beside the step count."""

    def state_dict(self) -> dict[str, Any]:
        """State and options, with parameters numbered; tensors are not copied."""
        for hook in self._called("state_dict_pre"):
            hook(self)
        saved = self._state_dict()
        for hook in self._called("state_dict_post"):
            saved = hook(self, saved) or saved
        return saved

    def _state_dict(self) -> dict[str, Any]:
        order: dict[int, int] = {}
        for i, p in enumerate(self._parameters()):
            order.setdefault(id(p), i)
        state = {order[id(p)]: _to_save(s, p) for p, s in self.state.items()}
        groups = [
            {**{k: v for k, v in g.items() if k != "params"},
             "params": [order[id(p)] for p in g["params"]]}
            for g in self.param_groups
        ]  # fmt: skip
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load state and options that `state_dict` returned; tensors are copied.

        Raises:
            OptimizerError: the groups differ in number or size.
        """
        for hook in self._called("load_pre"):
            state_dict = hook(self, state_dict) or state_dict
        self._load(state_dict)
        for hook in self._called("load_post"):
            hook(self)
        end_program()

    def _load(self, state_dict: Mapping[str, Any]) -> None:
        groups = state_dict["param_groups"]
        sizes = [len(g["params"]) for g in self.param_groups]
        loaded_sizes = [len(g["params"]) for g in groups]
        if sizes != loaded_sizes:
            raise OptimizerError.here(
                f"load_state_dict: expected groups of {sizes} parameters, got {loaded_sizes}"
            )
        for group, loaded in zip(self.param_groups, groups, strict=True):
            group.update({k: v for k, v in loaded.items() if k != "params"})
        numbers = [i for g in groups for i in g["params"]]
        self.state.clear()
        for i, p in zip(numbers, self._parameters(), strict=True):
            entries: Mapping[str, Any] = state_dict["state"].get(i, {})
            if entries:
                there = {k: v for k, v in entries.items() if v is not None}
                self.state[p] = {k: _to_load(k, v, p, self.carries) for k, v in there.items()}

    def _parameters(self) -> list[Tensor]:
        return [p for g in self.param_groups for p in g["params"]]


def _to_save(state: Mapping[str, Any], p: Tensor) -> dict[str, Any]:
    """The state of a parameter as saved: slices if the parameter is a shard."""
    return {k: sliced(v, p) if isinstance(v, Tensor) else v for k, v in state.items()}


def _to_load(name: str, value: Any, p: Tensor, carries: Collection[str]) -> Any:
    """A loaded entry of a parameter's state; all but single numbers have the parameter's shape."""
    if name in carries:
        return float(value)
    part: Any = value if name == "step" else own_part(value, p)
    return wrap(leaf(part.array.copy(), p.lazy)) if isinstance(part, Tensor) else part
