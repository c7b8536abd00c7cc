"""`tf.keras.applications`: VGG, ResNets and MobileNets, with Keras's names of layers.

>>> import weft.tf1 as tf
>>> model = tf.keras.applications.MobileNet(input_shape=(32, 32, 3), alpha=0.25, weights=None)
>>> model.count_params(), model.layers[1].name
(475544, 'conv1')
"""

from weft import exports as _exports
from weft.tf1.keras.applications import mobilenet as mobilenet
from weft.tf1.keras.applications import mobilenet_v2 as mobilenet_v2
from weft.tf1.keras.applications import resnet as resnet
from weft.tf1.keras.applications import resnet50 as resnet50
from weft.tf1.keras.applications import resnet_v2 as resnet_v2
from weft.tf1.keras.applications import vgg16 as vgg16
from weft.tf1.keras.applications import vgg19 as vgg19
from weft.tf1.keras.applications.network import *

_exports.gather(
    globals(), "mobilenet", "mobilenet_v2", "resnet", "resnet50", "resnet_v2", "vgg16", "vgg19"
)
