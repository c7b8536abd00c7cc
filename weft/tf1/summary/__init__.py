"""`tf.summary`: values of a graph for TensorBoard.

>>> import tempfile
>>> import weft.tf1 as tf
>>> with tf.Graph().as_default(), tf.Session() as sess:
...     summary = tf.summary.scalar("loss", tf.constant(0.5))
...     with tf.summary.FileWriter(tempfile.mkdtemp(), sess.graph) as writer:
...         writer.add_summary(sess.run(summary), global_step=1)
"""

from weft import exports as _exports
from weft.ops.refusal import guard as _guard
from weft.tf1.summary.operation import *
from weft.tf1.summary.proto import *
from weft.tf1.summary.writer import *

_exports.gather(globals())
_guard(globals())
