"""TensorBoard files, with the API of `torch.utils.tensorboard` and no dependencies.

>>> import tempfile
>>> from weft.utils.tensorboard import SummaryWriter
>>> with SummaryWriter(tempfile.mkdtemp()) as writer:
...     for step in range(3):
...         writer.add_scalar("loss", 1 / (step + 1), step)
"""

from weft.utils.tensorboard.writer import SummaryWriter

__all__ = ["SummaryWriter"]
