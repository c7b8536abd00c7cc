"""What PyTorch keeps in `torch.utils`, by its names."""

from weft.utils import checkpoint, dlpack

__all__ = ["checkpoint", "dlpack"]
