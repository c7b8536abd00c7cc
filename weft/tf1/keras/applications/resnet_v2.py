"""`tf.keras.applications.resnet_v2`: ResNets with norms first, and their inputs."""

from weft import exports as _exports
from weft.tf1.keras.applications.images import decode_predictions as decode_predictions
from weft.tf1.keras.applications.images import from_minus_one as _from_minus_one
from weft.tf1.keras.applications.network import ResNet50V2 as ResNet50V2
from weft.tf1.keras.applications.network import ResNet101V2 as ResNet101V2
from weft.tf1.keras.applications.network import ResNet152V2 as ResNet152V2

preprocess_input = _from_minus_one

_exports.gather(globals())
