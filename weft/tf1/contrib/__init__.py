"""The most used parts of `tf.contrib`, each imported on first use."""

from typing import TYPE_CHECKING

from weft import exports as _exports

if TYPE_CHECKING:
    from weft.tf1 import distributions as distributions
    from weft.tf1 import keras as keras
    from weft.tf1 import signal as signal
    from weft.tf1.contrib import crf as crf
    from weft.tf1.contrib import framework as framework
    from weft.tf1.contrib import layers as layers
    from weft.tf1.contrib import learn as learn
    from weft.tf1.contrib import legacy_seq2seq as legacy_seq2seq
    from weft.tf1.contrib import lookup as lookup
    from weft.tf1.contrib import losses as losses
    from weft.tf1.contrib import metrics as metrics
    from weft.tf1.contrib import opt as opt
    from weft.tf1.contrib import rnn as rnn
    from weft.tf1.contrib import seq2seq as seq2seq
    from weft.tf1.contrib import slim as slim
    from weft.tf1.contrib import staging as staging
    from weft.tf1.contrib import tpu as tpu
    from weft.tf1.contrib import training as training
    from weft.tf1.distribute import cluster_resolver as cluster_resolver

__all__: list[str] = []
_exports.lazy(
    globals(),
    {
        "weft.tf1.contrib": [
            "crf", "framework", "layers", "learn", "legacy_seq2seq", "lookup", "losses", "metrics",
            "opt", "rnn", "seq2seq", "slim", "staging", "tpu", "training",
        ],
        "weft.tf1.distribute": ["cluster_resolver"],
        "weft.tf1": ["distributions", "keras", "signal"],
    },
)  # fmt: skip
