"""`tf.keras.applications.vgg19`: VGG19, and its inputs."""

from weft import exports as _exports
from weft.tf1.keras.applications.images import blue_first as _blue_first
from weft.tf1.keras.applications.images import decode_predictions as decode_predictions
from weft.tf1.keras.applications.network import VGG19 as VGG19

preprocess_input = _blue_first

_exports.gather(globals())
