"""The names of `weft.tf1`, which loads this module when the first of them is used."""

# A list to read; `gather` makes these names public.
# ruff: noqa: I001
# pyright: reportUnusedImport=false
from __future__ import annotations

from typing import Any

from weft import exports as _exports
from weft.ops import declaration as _declaration
from weft.ops.refusal import guard as _guard
from weft.tf1 import (
    app, bitwise, compat, errors, flags, gfile, initializers, linalg, logging, losses, math,
    metrics, nn, random, strings,
)  # fmt: skip
from weft.tf1.control.branch import *
from weft.tf1.control.check import *
from weft.tf1.control.dependency import *
from weft.tf1.control.dependency import tuple_ as tuple
from weft.tf1.control.functional_loop import *
from weft.tf1.control.gradient import *
from weft.tf1.control.loop import while_loop
from weft.tf1.control.py_func import *
from weft.tf1.control.tensor_array import TensorArray
from weft.tf1.control.user_op import *
from weft.tf1.creation import *
from weft.tf1.elementwise.arithmetic import *
from weft.tf1.elementwise.clip import *
from weft.tf1.errors import OpError
from weft.tf1.framework.behavior import *
from weft.tf1.framework.collection import GraphKeys
from weft.tf1.framework.convert import *
from weft.tf1.framework.convert import of_op as _of_op
from weft.tf1.framework.device_spec import *
from weft.tf1.framework.dtypes import *
from weft.tf1.framework.dtypes import bool_ as bool
from weft.tf1.framework.default_graph import *
from weft.tf1.framework.graph import *
from weft.tf1.framework.indexed_slices import *
from weft.tf1.framework.sparse_tensor import *
from weft.tf1.framework.tensor import *
from weft.tf1.framework.tensor_shape import *
from weft.tf1.framework.tensor_spec import *
from weft.tf1.indexing.data_dependent import *
from weft.tf1.indexing.order import *
from weft.tf1.indexing.segment_reduction import *
from weft.tf1.indexing.slicing import *
from weft.tf1.linalg.contraction import *
from weft.tf1.linalg.diagonal import *
from weft.tf1.linalg.factorization import *
from weft.tf1.nn.rnn import reverse_sequence
from weft.tf1.random.distribution import *
from weft.tf1.reduction import *
from weft.tf1.session.options import *
from weft.tf1.shaping.arrangement import *
from weft.tf1.strings.bucket import *
from weft.tf1.strings.number import *
from weft.tf1.strings.text import *
from weft.tf1.variable.counting import *
from weft.tf1.variable.initializer import *
from weft.tf1.variable.partitioned import *
from weft.tf1.variable.partitioner import *
from weft.tf1.variable.assignment import *
from weft.tf1.variable.variable import *
from weft.tf1.variable.variable_list import *
from weft.tf1.variable.variable_scope import *
from weft.tf1.version import VERSION as VERSION
from weft.tf1.version import VERSION as __version__

mul = multiply
sub = subtract
neg = negative
pack = stack
unpack = unstack

_exports.gather(
    globals(), "app", "bitwise", "compat", "contrib", "data", "distribute", "errors", "estimator",
    "flags", "gfile", "initializers", "layers", "linalg", "logging", "lookup", "losses", "math",
    "metrics", "nn", "python_io", "queue", "random", "strings", "summary", "train",
)  # fmt: skip

for _part in (bitwise, initializers, linalg, losses, math, metrics, nn, random, strings):
    _guard(vars(_part))
_guard(globals())


def _declared(name: str) -> Any:
    """An operation that a program declares.

    Raises:
        AttributeError: none has this name.
    """
    op = _declaration.source_of("tf1", name)
    if op is not None:
        return _of_op(op)
    raise AttributeError(
        f"weft.tf1 has no {name!r}: docs/TF1.md says what it has and what is absent"
    )


# What a program may never use, or not before it has a graph; and packages above: Keras runs
# on the trainer, and `tf.layers`, which `tf.contrib` uses, is made of Keras's layers.
_exports.lazy(
    globals(),
    {
        "weft.formats.example_spec": [
            "FixedLenFeature", "FixedLenSequenceFeature", "VarLenFeature",
        ],
        "weft.tf1": [
            "config", "contrib", "data", "distribute", "distributions", "estimator",
            "feature_column", "graph_util", "image", "keras", "layers", "lookup", "python_io",
            "queue", "saved_model", "signal", "sparse", "spectral", "summary", "test", "train",
        ],
        "weft.tf1.control.tape": ["GradientTape", "custom_gradient", "make_template"],
        "weft.tf1.data.decode": [
            "decode_csv", "decode_image", "decode_jpeg", "decode_png", "decode_raw",
            "parse_example", "parse_single_example", "read_file",
        ],
        "weft.tf1.data.reader": [
            "FixedLengthRecordReader", "IdentityReader", "ReaderBase", "TFRecordReader",
            "TextLineReader", "WholeFileReader",
        ],
        "weft.tf1.data_flow.accumulator": [
            "ConditionalAccumulator", "ConditionalAccumulatorBase",
            "SparseConditionalAccumulator",
        ],
        "weft.tf1.data_flow.barrier": ["Barrier"],
        "weft.tf1.data_flow.queue": [
            "FIFOQueue", "PaddingFIFOQueue", "PriorityQueue", "RandomShuffleQueue",
        ],
        "weft.tf1.data_flow.queue_base": ["QueueBase"],
        "weft.tf1.data_flow.table": ["initialize_all_tables", "tables_initializer"],
        "weft.tf1.eager.forms": ["print"],
        "weft.tf1.eager.function": ["function"],
        "weft.tf1.eager.module": ["Module"],
        "weft.tf1.eager.mode": [
            "enable_eager_execution", "enable_v2_behavior", "executing_eagerly",
        ],
        "weft.tf1.framework": ["nest"],
        "weft.tf1.framework.graph_def": ["GraphDef"],
        "weft.tf1.framework.importer": ["import_graph_def"],
        "weft.tf1.framework.node_def": ["NodeDef"],
        "weft.tf1.image": ["random_crop"],
        "weft.tf1.session.base": ["get_default_session"],
        "weft.tf1.session.session": ["InteractiveSession", "Session"],
        "weft.tf1.session.tracing": ["RunMetadata", "RunOptions"],
        "weft.tf1.signal": ["fft", "fft2d", "fft3d", "ifft", "ifft2d", "ifft3d"],
        "weft.tf1.sparse": [
            "sparse_add", "sparse_concat", "sparse_reduce_sum", "sparse_reorder", "sparse_reshape",
            "sparse_retain", "sparse_slice", "sparse_softmax", "sparse_tensor_dense_matmul",
            "sparse_tensor_to_dense", "sparse_to_dense", "sparse_to_indicator",
            "sparse_transpose",
        ],
        "weft.tf1.summary.proto": ["Event", "Summary"],
        "weft.tf1.train.meta_graph_def": ["MetaGraphDef"],
    },
    _declared,
    lambda: _declaration.sources("tf1"),
)  # fmt: skip
