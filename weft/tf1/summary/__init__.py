"""`tf.summary`: values of a graph for TensorBoard.

>>> import tempfile
>>> import weft.tf1 as tf
>>> with tf.Graph().as_default(), tf.Session() as sess:
...     summary = tf.summary.scalar("loss", tf.constant(0.5))
...     with tf.summary.FileWriter(tempfile.mkdtemp(), sess.graph) as writer:
...         writer.add_summary(sess.run(summary), global_step=1)
"""

from weft.tf1.summary.operation import (
    audio,
    histogram,
    image,
    merge,
    merge_all,
    scalar,
    tensor_summary,
    text,
)
from weft.tf1.summary.proto import Event, Summary
from weft.tf1.summary.writer import FileWriter, FileWriterCache

__all__ = [
    "Event", "FileWriter", "FileWriterCache", "Summary", "audio", "histogram", "image", "merge",
    "merge_all", "scalar", "tensor_summary", "text",
]  # fmt: skip
