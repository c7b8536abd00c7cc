"""Data sets: images and text read from a local folder, tables, and bundled digits."""

from weft import exports as _exports
from weft.datasets.digits import load_digits as load_digits
from weft.datasets.mnist import *
from weft.datasets.table import read_csv as read_csv
from weft.datasets.text import *
from weft.datasets.vision import *
from weft.formats.idx import read_idx as read_idx

_exports.gather(globals())
