"""`tf.keras.applications.resnet`: ResNets, and their inputs."""

from weft import exports as _exports
from weft.tf1.keras.applications.images import blue_first as _blue_first
from weft.tf1.keras.applications.images import decode_predictions as decode_predictions
from weft.tf1.keras.applications.network import ResNet50 as ResNet50
from weft.tf1.keras.applications.network import ResNet101 as ResNet101
from weft.tf1.keras.applications.network import ResNet152 as ResNet152

preprocess_input = _blue_first

_exports.gather(globals())
