"""`tf.keras.applications.mobilenet_v2`: MobileNetV2, and its inputs."""

from weft import exports as _exports
from weft.tf1.keras.applications.images import from_minus_one as preprocess_input
from weft.tf1.keras.applications.network import MobileNetV2 as MobileNetV2

_exports.gather(globals())
