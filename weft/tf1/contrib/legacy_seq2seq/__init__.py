"""`tf.contrib.legacy_seq2seq`: sequences as lists of steps."""

from weft import exports as _exports
from weft.tf1.contrib.legacy_seq2seq.decoder import *
from weft.tf1.contrib.legacy_seq2seq.loss import *

_exports.gather(globals())
