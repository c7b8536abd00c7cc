"""What PyTorch keeps in `torch.utils`, by its names."""

from weft.utils import checkpoint

__all__ = ["checkpoint"]
