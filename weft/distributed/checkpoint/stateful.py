"""`Stateful`: objects whose state is saved and loaded by their own methods."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, runtime_checkable


@runtime_checkable
class Stateful(Protocol):
    """An object with `state_dict` and `load_state_dict`, as modules and optimizers have them.

    `load` calls both: tensors of the state dict are filled in place, and the dict is loaded.
    """

    def state_dict(self) -> dict[str, Any]:
        """The state: a dict of tensors, numbers and strings, or of dicts and lists of these."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore a state that `state_dict` returned."""
        ...


StatefulT = TypeVar("StatefulT", bound=Stateful)
