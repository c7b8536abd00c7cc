"""Certificates for tests, by the standard library alone: RSA, X.509, PEM."""

import base64
import hashlib
import random
import time
from typing import NamedTuple

BITS = 2048
_SMALL = [n for n in range(3, 2000) if all(n % k for k in range(2, int(n**0.5) + 1))]


class Key(NamedTuple):
    n: int
    e: int
    d: int
    p: int
    q: int


def make_key(seed):
    """A private key. From a seed: good for tests only."""
    drawn = random.Random(seed)
    p, q = _prime(drawn), _prime(drawn)
    e = 65537
    return Key(p * q, e, pow(e, -1, (p - 1) * (q - 1)), p, q)


def _prime(drawn):
    while True:
        n = drawn.getrandbits(BITS // 2) | 3 << (BITS // 2 - 2) | 1
        if all(n % p for p in _SMALL) and n % 65537 != 1 and _is_probably_prime(n):
            return n


def _is_probably_prime(n):
    return all(pow(a, n - 1, n) == 1 for a in (2, 3, 5, 7))  # Fermat: enough for random numbers


# -- DER


def _der(tag, *parts):
    body = b"".join(parts)
    size = len(body)
    if size < 128:
        return bytes((tag, size)) + body
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + body


def _integer(n):
    return _der(2, n.to_bytes(n.bit_length() // 8 + 1, "big"))


def _oid(text):
    first, second, *rest = map(int, text.split("."))
    out = bytes((40 * first + second,))
    for n in rest:
        groups = [n & 127]
        while n := n >> 7:
            groups.append(128 | n & 127)
        out += bytes(reversed(groups))
    return _der(6, out)


def _sequence(*parts):
    return _der(0x30, *parts)


def _bits(data):
    return _der(3, b"\0" + data)


def _name(text):
    pair = _sequence(_oid("2.5.4.3"), _der(12, text.encode()))
    return _sequence(_der(0x31, pair))


def _extension(oid, value):
    return _sequence(_oid(oid), _der(1, b"\xff"), _der(4, value))


_SHA256_RSA = _sequence(_oid("1.2.840.113549.1.1.11"), _der(5))
_SHA256_PREFIX = bytes.fromhex("3031300d060960864801650304020105000420")


def _signed(body, key):
    digest = _SHA256_PREFIX + hashlib.sha256(body).digest()
    size = BITS // 8
    padded = b"\0\1" + b"\xff" * (size - 3 - len(digest)) + b"\0" + digest
    return pow(int.from_bytes(padded, "big"), key.d, key.n).to_bytes(size, "big")


def _time(seconds):
    return _der(23, time.strftime("%y%m%d%H%M%SZ", time.gmtime(seconds)).encode())


def make_certificate(name, key, authority, authority_key, hosts=()):
    """A certificate of `authority` in PEM; without hosts it is an authority's own."""
    public = _sequence(
        _sequence(_oid("1.2.840.113549.1.1.1"), _der(5)),
        _bits(_sequence(_integer(key.n), _integer(key.e))),
    )
    if hosts:
        names = _sequence(
            *[_der(0x82, h.encode()) for h in hosts], _der(0x87, bytes((127, 0, 0, 1)))
        )
        extension = _extension("2.5.29.17", names)
    else:
        extension = _extension("2.5.29.19", _sequence(_der(1, b"\xff")))
    now = time.time()
    body = _sequence(
        _der(0xA0, _integer(2)), _integer(abs(hash((name, key.n))) + 1), _SHA256_RSA,
        _name(authority), _sequence(_time(now - 3600), _time(now + 86400)), _name(name), public,
        _der(0xA3, _sequence(extension)),
    )  # fmt: skip
    whole = _sequence(body, _SHA256_RSA, _bits(_signed(body, authority_key)))
    return _pem("CERTIFICATE", whole)


def private(key):
    """A private key in PEM."""
    numbers = (
        0, key.n, key.e, key.d, key.p, key.q, key.d % (key.p - 1), key.d % (key.q - 1),
        pow(key.q, -1, key.p),
    )  # fmt: skip
    return _pem("RSA PRIVATE KEY", _sequence(*map(_integer, numbers)))


def _pem(title, data):
    text = base64.b64encode(data).decode()
    lines = [text[i : i + 64] for i in range(0, len(text), 64)]
    return "\n".join([f"-----BEGIN {title}-----", *lines, f"-----END {title}-----", ""])
