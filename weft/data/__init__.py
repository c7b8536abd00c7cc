"""Input pipelines with tf.data's API: `Dataset`, and datasets that read files."""

from weft import exports as _exports
from weft.data.dataset import Dataset as Dataset
from weft.data.files import *
from weft.formats.example_spec import *
from weft.ops.refusal import guard
from weft.pipeline import AUTOTUNE as AUTOTUNE
from weft.pipeline import INFINITE as _INFINITE
from weft.pipeline import UNKNOWN as _UNKNOWN

INFINITE_CARDINALITY = _INFINITE
UNKNOWN_CARDINALITY = _UNKNOWN

_exports.gather(globals())
guard(globals())
