"""`tf.distribute`: strategies of one device, cluster resolvers."""

from weft import exports as _exports
from weft.tf1.distribute import cluster_resolver as cluster_resolver
from weft.tf1.distribute.strategy import *

_exports.gather(globals(), "cluster_resolver")
