"""`tf.strings`: texts, which are bytes, in a graph."""

from weft.tf1.strings.bucket import (
    string_to_hash_bucket,
    string_to_hash_bucket_fast,
    string_to_hash_bucket_strong,
)  # fmt: skip
from weft.tf1.strings.number import as_string, string_to_number
from weft.tf1.strings.text import (
    reduce_join,
    regex_full_match,
    regex_replace,
    string_join,
    string_length,
    string_lower,
    string_strip,
    string_upper,
    substr,
)  # fmt: skip

join = string_join
length = string_length
lower = string_lower
strip = string_strip
to_hash_bucket = string_to_hash_bucket
to_hash_bucket_fast = string_to_hash_bucket_fast
to_hash_bucket_strong = string_to_hash_bucket_strong
to_number = string_to_number
upper = string_upper

__all__ = [
    "as_string", "join", "length", "lower", "reduce_join", "regex_full_match", "regex_replace",
    "strip", "substr", "to_hash_bucket", "to_hash_bucket_fast", "to_hash_bucket_strong",
    "to_number", "upper",
]  # fmt: skip
