"""Input pipelines of NumPy arrays: sources, transformations, threads, exactly resumable state.

`weft.data`, `weft.utils.data` and `weft.tf1.data` are APIs over it with other elements and names.
"""

from weft.pipeline.call import element_random
from weft.pipeline.iterator import Iterator
from weft.pipeline.mapping import AUTOTUNE
from weft.pipeline.permutation import Permutation
from weft.pipeline.pipeline import Pipeline
from weft.pipeline.stage import INFINITE, UNKNOWN, Stage

__all__ = [
    "AUTOTUNE", "INFINITE", "UNKNOWN", "Iterator", "Permutation", "Pipeline", "Stage",
    "element_random",
]  # fmt: skip
