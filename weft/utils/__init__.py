"""What PyTorch keeps in `torch.utils`, by its names."""

from weft.utils import checkpoint, data, dlpack, tensorboard

__all__ = ["checkpoint", "data", "dlpack", "tensorboard"]
