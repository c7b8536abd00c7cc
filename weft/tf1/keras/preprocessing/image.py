"""`tf.keras.preprocessing.image`: batches of images, changed at random."""

from weft import exports as _exports
from weft.datasets.changed_images import *

_exports.gather(globals())
