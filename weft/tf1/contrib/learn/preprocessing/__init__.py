"""`tf.contrib.learn.preprocessing`: texts as numbers."""

from weft import exports as _exports
from weft.tf1.contrib.learn.preprocessing.text import *

_exports.gather(globals())
