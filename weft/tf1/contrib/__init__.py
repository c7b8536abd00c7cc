"""The most used parts of `tf.contrib`, each imported on first use."""

from weft import exports as _exports

__all__: list[str] = []
_exports.lazy(
    globals(),
    {
        "weft.tf1.contrib": [
            "crf", "data", "framework", "layers", "learn", "legacy_seq2seq", "lookup", "rnn",
            "seq2seq", "slim", "staging", "training",
        ],
        "weft.tf1.distribute": ["cluster_resolver"],
        "weft.tf1": ["keras"],
    },
)  # fmt: skip
