"""`tf.keras.applications.mobilenet`: MobileNet, and its inputs."""

from weft import exports as _exports
from weft.tf1.keras.applications.images import from_minus_one as preprocess_input
from weft.tf1.keras.applications.network import MobileNet as MobileNet

_exports.gather(globals())
