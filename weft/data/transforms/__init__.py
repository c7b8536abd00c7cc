"""Random augmentation of images with torchvision's names.

Images are Pillow images, or uint8 arrays (height, width, channels); `ToTensor` gives float32
tensors (channels, height, width). In a pipeline or a loader, random numbers are keyed by the
element, so they are the same in any thread or process and after a resume; elsewhere they follow
`weft.manual_seed`.
"""

from weft.data.transforms.color import ColorJitter, Grayscale
from weft.data.transforms.compose import Compose, Lambda, RandomApply
from weft.data.transforms.geometry import (
    CenterCrop,
    Pad,
    RandomCrop,
    RandomHorizontalFlip,
    RandomResizedCrop,
    RandomVerticalFlip,
    Resize,
)
from weft.data.transforms.tensor import (
    MixUp,
    Normalize,
    PILToTensor,
    RandomErasing,
    ToTensor,
)

__all__ = [
    "CenterCrop", "ColorJitter", "Compose", "Grayscale", "Lambda", "MixUp", "Normalize",
    "PILToTensor", "Pad", "RandomApply", "RandomCrop", "RandomErasing", "RandomHorizontalFlip",
    "RandomResizedCrop", "RandomVerticalFlip", "Resize", "ToTensor",
]  # fmt: skip
