"""`DataParallel` on one device: the module itself, under the name that checkpoints have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.eager.tensor.device import number_of
from weft.errors import ArgumentError
from weft.nn.module.module import Module


class DataParallel(Module):
    """Calls a module: there is one device. Train on several by `DistributedDataParallel`.

    The names in its `state_dict` begin with `module.`, as in PyTorch.

    Args:
        module: the model.
        device_ids: at most one device.
        output_device: the same one.
        dim: the dimension of examples, which is not split.

    Raises:
        ArgumentError: there are several devices.

    Example:
        >>> import weft as wf
        >>> list(wf.nn.DataParallel(wf.nn.Linear(1, 1, bias=False)).state_dict())
        ['module.weight']
    """

    def __init__(
        self, module: Module, device_ids: Sequence[Any] | None = None, output_device: Any = None,
        dim: int = 0,
    ) -> None:  # fmt: skip
        super().__init__()
        if device_ids is not None and len(device_ids) > 1:
            raise ArgumentError.here(
                f"DataParallel: expected at most one device, got {list(device_ids)}: train on "
                f"several ranks by DistributedDataParallel and `weft launch`"
            )
        for device in (*(device_ids or ()), output_device):
            number_of(device if not isinstance(device, int) else f"cpu:{device}")
        self.dim = dim
        self.module = module

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """The module's result."""
        return self.module(*inputs, **kwargs)
