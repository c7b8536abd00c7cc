"""Precision: float32, float64, bfloat16, or mixed with 16 bits."""

from __future__ import annotations

import contextlib
from typing import Any, Final

from weft.eager.functions.api import GradScaler, Tensor, autocast
from weft.errors import ArgumentError
from weft.host.nested import NESTED
from weft.ir.dtype import DType, bfloat16, float16, float64

_MIXED: Final[dict[str, DType]] = {"bf16-mixed": bfloat16, "16-mixed": float16}
_TRUE: Final[dict[str, DType]] = {"64-true": float64, "bf16-true": bfloat16}
_NAMES: Final = {"32": "32-true", "64": "64-true", "bf16": "bf16-mixed", "16": "16-mixed"}


class Precision:
    """Autocast contexts and loss scaling for one of Lightning's names.

    Args:
        name: `"32-true"` (or `32`), `"bf16-mixed"`, `"16-mixed"` with a scaled loss, `"64-true"`,
            `"bf16-true"`.

    Raises:
        ArgumentError: the name is unknown.
    """

    def __init__(self, name: str | int) -> None:
        self.name = _NAMES.get(str(name), str(name))
        known = ("32-true", *_MIXED, *_TRUE)
        if self.name not in known:
            raise ArgumentError.here(
                f"Trainer: expected precision of {', '.join(known)}, got {name!r}"
            )
        self.dtype = _MIXED.get(self.name)
        self.scaler = GradScaler() if self.name == "16-mixed" else None

    def prepare(self, module: Any) -> None:
        """Convert the module, if the precision changes its own type."""
        if self.name in _TRUE:
            module.to(_TRUE[self.name])

    @property
    def converts(self) -> bool:
        """Whether batches are converted."""
        return self.name in _TRUE

    def convert(self, batch: Any) -> Any:
        """The batch with floating tensors converted to the module's type."""
        dtype = _TRUE[self.name]
        return NESTED.mapped(
            lambda x: x.to(dtype) if isinstance(x, Tensor) and x.dtype.is_floating else x, batch
        )

    def forward(self) -> contextlib.AbstractContextManager[Any]:
        """The context of a step's forward pass."""
        return contextlib.nullcontext() if self.dtype is None else autocast(self.dtype)

    def state_dict(self) -> dict[str, Any]:
        """The scaler's state."""
        return {} if self.scaler is None else self.scaler.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the scaler's state."""
        if self.scaler is not None and state:
            self.scaler.load_state_dict(state)
