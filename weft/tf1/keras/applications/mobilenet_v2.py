"""`tf.keras.applications.mobilenet_v2`: MobileNetV2, and its inputs."""

from weft import exports as _exports
from weft.tf1.keras.applications.images import decode_predictions as decode_predictions
from weft.tf1.keras.applications.images import from_minus_one as _from_minus_one
from weft.tf1.keras.applications.network import MobileNetV2 as MobileNetV2

preprocess_input = _from_minus_one

_exports.gather(globals())
