"""Input pipelines of NumPy arrays: sources, transformations, threads, exactly resumable state.

`weft.data`, `weft.utils.data` and `weft.tf1.data` are APIs over it with other elements and names.
"""

from weft import exports as _exports
from weft.pipeline.call import element_random as element_random
from weft.pipeline.iterator import Iterator as Iterator
from weft.pipeline.mapping import AUTOTUNE as AUTOTUNE
from weft.pipeline.permutation import Permutation as Permutation
from weft.pipeline.pipeline import Pipeline as Pipeline
from weft.pipeline.stage import *

_exports.gather(globals())
