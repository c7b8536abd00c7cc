"""`tf.image`: images decoded, resized, cropped, turned and colored."""

from weft import exports as _exports
from weft.tf1.data.decode import decode_image as decode_image
from weft.tf1.data.decode import decode_jpeg as decode_jpeg
from weft.tf1.data.decode import decode_png as decode_png
from weft.tf1.image.color import *
from weft.tf1.image.encode import *
from weft.tf1.image.resize import *

_exports.gather(globals())
