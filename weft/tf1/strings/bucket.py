"""Texts as numbers of buckets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weft.errors import ArgumentError
from weft.formats import text_hash
from weft.tf1.framework.dtypes import int64
from weft.tf1.framework.graph import fail, name_scope
from weft.tf1.framework.host import host_tensor
from weft.tf1.framework.tensor import Tensor
from weft.tf1.strings.text import text_tensor

__all__ = [
    "string_to_hash_bucket", "string_to_hash_bucket_fast", "string_to_hash_bucket_strong",
]  # fmt: skip

Hash = Callable[[Sequence[bytes]], Any]


def _buckets(kind: str, x: Any, count: int, hashes: Hash, name: str | None) -> Tensor:
    if count < 1:
        raise fail(ArgumentError, f"{kind}: expected num_buckets >= 1, got {count}")
    with name_scope(name, kind, [x]) as scope:
        tensor = text_tensor(x, kind)

        def run(texts: Any) -> Any:
            found = hashes(texts.ravel().tolist()) % np.uint64(count)
            return found.astype(np.int64).reshape(texts.shape)

        return host_tensor(kind, [tensor], run, int64, tensor.shape, scope)


def string_to_hash_bucket(
    string_tensor: Any = None, num_buckets: int | None = None, name: str | None = None,
    input: Any = None,
) -> Tensor:  # fmt: skip
    """The bucket of each text by TensorFlow's old hash, int64.

    Args:
        num_buckets: how many there are.
        input: another name of `string_tensor`.
    """
    given = input if string_tensor is None else string_tensor
    kind = "StringToHashBucket"
    return _buckets(kind, given, int(num_buckets or 0), text_hash.murmur_hashes, name)


def string_to_hash_bucket_fast(input: Any, num_buckets: int, name: str | None = None) -> Tensor:
    """The bucket of each text by FarmHash's fingerprint, int64; never another in other versions.

    Args:
        num_buckets: how many there are.
    """
    kind = "StringToHashBucketFast"
    return _buckets(kind, input, int(num_buckets), text_hash.fingerprints, name)


def string_to_hash_bucket_strong(
    input: Any, num_buckets: int, key: Sequence[int], name: str | None = None
) -> Tensor:
    """The bucket of each text by SipHash, int64: who has no key cannot make texts collide.

    Args:
        num_buckets: how many there are.
        key: two numbers of 64 bits.
    """
    if len(key) != 2:
        raise fail(ArgumentError, f"string_to_hash_bucket_strong: expected 2 keys, got {key}")
    words = (int(key[0]), int(key[1]))
    keyed = lambda texts: text_hash.sip_hashes(texts, words)  # noqa: E731
    return _buckets("StringToHashBucketStrong", input, int(num_buckets), keyed, name)
