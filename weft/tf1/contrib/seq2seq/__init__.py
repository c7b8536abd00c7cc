"""`tf.contrib.seq2seq`: sequence decoders with attention and beam search."""

from weft import exports as _exports
from weft.tf1.contrib.seq2seq.attention import *
from weft.tf1.contrib.seq2seq.attention_wrapper import *
from weft.tf1.contrib.seq2seq.basic_decoder import *
from weft.tf1.contrib.seq2seq.beam_search_decoder import *
from weft.tf1.contrib.seq2seq.decoder import *
from weft.tf1.contrib.seq2seq.gather_tree import *
from weft.tf1.contrib.seq2seq.helper import *
from weft.tf1.contrib.seq2seq.loss import sequence_loss as sequence_loss
from weft.tf1.contrib.seq2seq.monotonic_attention import *
from weft.tf1.contrib.seq2seq.scheduled_helper import *

_exports.gather(globals())
