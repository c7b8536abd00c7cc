"""BLAKE2b of 32 bytes: what tells contents apart.

The module `hashlib` also loads OpenSSL: a process's first result would wait 3 ms for it.
"""

from __future__ import annotations

try:
    from _blake2 import blake2b
except ImportError:  # another Python
    from hashlib import blake2b

SIZE = 32


def digest_of(data: bytes) -> bytes:
    """The digest of some bytes."""
    return blake2b(data, digest_size=SIZE).digest()
