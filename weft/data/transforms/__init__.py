"""Random augmentation of images with torchvision's names.

Images are Pillow images, or uint8 arrays (height, width, channels); `ToTensor` gives float32
tensors (channels, height, width). In a pipeline or a loader, random numbers are keyed by the
element, so they are the same in any thread or process and after a resume; elsewhere they follow
`weft.manual_seed`.
"""

from weft import exports as _exports
from weft.data.transforms.color import *
from weft.data.transforms.compose import *
from weft.data.transforms.geometry import *
from weft.data.transforms.tensor import *

_exports.gather(globals())
