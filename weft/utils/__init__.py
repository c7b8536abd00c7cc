"""What PyTorch keeps in `torch.utils`, by its names."""

from weft.utils import checkpoint, data, dlpack

__all__ = ["checkpoint", "data", "dlpack"]
